//go:build e2e

package plugin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// java is the running Java program.
type java struct {
	in    io.WriteCloser
	lines *bufio.Scanner
	log   *bytes.Buffer
}

// start runs the Java program of this package, which is compiled before when need
// be.
func start(t testing.TB) *java {
	t.Helper()
	prepare := exec.Command(filepath.Join("..", "e2e", "stack", "ranger-plugin"))
	prepare.Stderr = os.Stderr
	command, err := prepare.Output()
	if err != nil {
		t.Fatalf("Ranger's plugin could not be prepared: %v", err)
	}
	j := &java{log: &bytes.Buffer{}}
	cmd := sqetest.Owned(exec.Command("bash", "-c", strings.TrimSpace(string(command))))
	cmd.Stderr = j.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if j.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = j.in.Close()
		timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait()
		if t.Failed() {
			text := j.log.String()
			t.Logf("the Java program wrote:\n%s", text[max(0, len(text)-4000):])
		}
	})
	j.lines = bufio.NewScanner(out)
	j.lines.Buffer(nil, 64<<20)
	return j
}

func (j *java) send(t testing.TB, x any) {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.in.Write(append(text, '\n')); err != nil {
		t.Fatalf("the Java program went away: %v", err)
	}
}

func (j *java) receive(t testing.TB, to any) {
	t.Helper()
	if !j.lines.Scan() {
		t.Fatal("the Java program went away")
	}
	if err := json.Unmarshal(j.lines.Bytes(), to); err != nil {
		t.Fatal(err)
	}
}

// answer is what one engine says to a request.
type answer struct {
	Allowed      bool   `json:"allowed"`
	AccessPolicy int64  `json:"accessPolicy"`
	Mask         string `json:"mask"`
	Value        string `json:"value"`
	MaskPolicy   int64  `json:"maskPolicy"`
	// Filter is nil without a filter; an empty one exempts.
	Filter       *string `json:"filter"`
	FilterPolicy int64   `json:"filterPolicy"`
}

// reply is what the Java program writes.
type reply struct {
	Answers  []answer `json:"answers"`
	Policies int64    `json:"policies"`
	Roles    int64    `json:"roles"`
	Tags     int64    `json:"tags"`
	Users    int64    `json:"users"`

	Compile int64 `json:"compile"` // ns
	Heap    int64 `json:"heap"`    // bytes
	Rounds  int64 `json:"rounds"`
	Round   int64 `json:"round"` // ns, for all requests once
	First   int64 `json:"first"` // ns
}
