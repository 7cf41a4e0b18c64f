//go:build linux

package slurmtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCluster checks that the Slurm cluster that Start starts on this machine runs jobs, even if
// its controller is restarted while one runs and another is queued.
func TestCluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a real Slurm takes a while")
	}
	c := Start(t)
	out := filepath.Join(t.TempDir(), "out")
	c.Run("sbatch", "--output=/dev/null", "--wrap=sleep 2; echo one >> "+out)
	// An exclusive job waits until no other job runs on its node.
	c.Run("sbatch", "--output=/dev/null", "--exclusive", "--wrap=echo two >> "+out)
	c.RestartController()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		raw, _ := os.ReadFile(out)
		if string(raw) == "one\ntwo\n" {
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log", "slurmctld"))
			t.Fatalf("the jobs wrote %q, want one and two\n%s\n%s\n%s", strings.TrimSpace(string(raw)), c.Run("squeue"), c.Run("sinfo", "-N", "-l"), log)
		}
	}
}
