//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOnce checks that a command runs once for each name, and not for a name in BINARIES.
func TestOnce(t *testing.T) {
	binaries := t.TempDir()
	t.Setenv("BINARIES", binaries)
	ready := filepath.Join(binaries, "ready")
	if err := os.WriteFile(ready, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &runner{work: t.TempDir(), built: map[string]bool{}}
	if path, err := r.once(t.Context(), "ready", "", "false"); err != nil || path != ready {
		t.Errorf("path %s, error %v; want %s", path, err, ready)
	}
	made := filepath.Join(r.work, "made")
	for _, command := range []string{"true", "false"} { // the second must not run
		if path, err := r.once(t.Context(), "made", "", command); err != nil || path != made {
			t.Errorf("%s: path %s, error %v; want %s", command, path, err, made)
		}
	}
	if _, err := r.once(t.Context(), "failed", "", "false"); err == nil {
		t.Error("no error of a command that fails")
	}
}
