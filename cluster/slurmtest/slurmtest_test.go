//go:build linux

package slurmtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCluster checks that the cluster runs jobs, also those that were queued when its controller
// was restarted.
func TestCluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a real Slurm takes a while")
	}
	c := Start(t)
	out := filepath.Join(t.TempDir(), "out")
	c.Run("sbatch", "--output=/dev/null", "--wrap=sleep 2; echo one >> "+out)
	c.Run("sbatch", "--output=/dev/null", "--exclusive", "--wrap=echo two >> "+out)
	c.RestartController()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		raw, _ := os.ReadFile(out)
		if string(raw) == "one\ntwo\n" {
			return
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log", "slurmctld"))
			t.Fatalf("the jobs write %q\n%s\n%s\n%s", strings.TrimSpace(string(raw)), c.Run("squeue"), c.Run("sinfo", "-N", "-l"), log)
		}
	}
}
