package sqetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports of tests lie below those that systems give to outgoing connections (from 32768
// on Linux): what found a free one among them may find it taken a moment later. They also
// lie below those of the Keycloak of the tests.
const (
	firstPort     = 11_000
	portBlock     = 100
	portBlocks    = 90
	mostPortTries = 10_000
)

// ports are those of this process. A block is its own for as long as it listens on the
// first of the block, which is until its end. None is handed out twice.
var ports struct {
	mu        sync.Mutex
	locks     []net.Listener // kept, as one that is forgotten is closed
	next, end int
}

// FreePort finds a port of the loopback interface that nothing listens on, and that no
// other call of any process of the tests is given.
func FreePort() (int, error) {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for range mostPortTries {
		if ports.next == ports.end {
			first := firstPort + portBlock*rand.IntN(portBlocks)
			lock, err := listen(first)
			if err != nil {
				continue
			}
			ports.locks = append(ports.locks, lock)
			ports.next, ports.end = first+1, first+portBlock
		}
		port := ports.next
		ports.next++
		if l, err := listen(port); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no port is free for tests")
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}
