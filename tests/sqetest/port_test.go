package sqetest

import "testing"

// TestFreePort: no port is handed out twice, also after more than a block of them, and
// a server can listen on each.
func TestFreePort(t *testing.T) {
	given := map[int]bool{}
	for range 2*portBlock + 10 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if given[port] || port <= firstPort || port >= firstPort+portBlock*portBlocks {
			t.Fatalf("port %d, given before: %v", port, given[port])
		}
		given[port] = true
		l, err := listen(port)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}
