//go:build linux && cgo

package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestLimitOfAddressSpace checks that a limit of the address space ends the program, or a process
// that it has started for its work, in one line.
func TestLimitOfAddressSpace(t *testing.T) {
	t.Parallel()
	if os.Getenv("NOETHER_TEST_SPACE") != "" {
		w, code, done := Run(func([]string) bool { return true })
		if done {
			os.Exit(code)
		}
		_ = w
		held := [][]byte{}
		for range 1 << 20 { // until memory is refused
			held = append(held, make([]byte, 64<<20))
		}
		t.Fatal(len(held))
	}
	for limit, want := range map[int]string{
		300_000:   "ulimit -v allows 0.3 GB",
		1_900_000: "ulimit -v allows 1.9 GB",
		2_500_000: "no more memory, of the 2.6 GB that ulimit -v allows",
	} {
		cmd := exec.Command("bash", "-c", fmt.Sprintf("ulimit -v %d; exec %s -test.run '^TestLimitOfAddressSpace$'", limit, os.Args[0]))
		cmd.Env = append(os.Environ(), "NOETHER_TEST_SPACE=1")
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), want) {
			t.Errorf("with %d KiB: error %v, output %q, want one line with %q", limit, err, out, want)
		}
	}
}
