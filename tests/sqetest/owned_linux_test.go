package sqetest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOwned: what tests started ends when they are killed; without Owned it goes on.
func TestOwned(t *testing.T) {
	if kind := os.Getenv("SQETEST_OWNER"); kind != "" {
		cmd := exec.Command("sleep", "600")
		if kind == "owned" {
			Owned(cmd)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Println("pid", cmd.Process.Pid)
		select {} // until it is killed
	}
	for _, kind := range []string{"owned", "not"} {
		owner := exec.Command(os.Args[0], "-test.run=^TestOwned$")
		owner.Env = append(os.Environ(), "SQETEST_OWNER="+kind)
		out, err := owner.StdoutPipe()
		if err == nil {
			err = owner.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		pid := 0
		for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
				pid, _ = strconv.Atoi(text)
			}
		}
		if err := owner.Process.Kill(); err != nil || pid == 0 {
			t.Fatal(pid, err)
		}
		_ = owner.Wait()
		// A process that has ended may be listed until its new parent takes notice.
		alive := func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err == nil && !strings.Contains(string(text), ") Z ")
		}
		if kind == "not" {
			if !alive() {
				t.Error("what is not owned ended too: the test shows nothing")
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Error(err)
			}
			continue
		}
		for start := time.Now(); alive(); time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > patience {
				t.Fatal("it goes on")
			}
		}
	}
}
