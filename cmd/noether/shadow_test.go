package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStarts tells the script of this package's wheel, and a link to the program, from the program
// of another package.
func TestStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	for name, text := range map[string]string{
		"own": "\x7fELF own", "script": "#!/bin/python3\nfrom noether_ml.__main__ import main\n",
		"units": "#!/bin/python3\nfrom noether.cli import main\n", "program": "\x7fELF other",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(own, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"own": true, "link": true, "script": true, "units": false, "program": false} {
		if got := starts(filepath.Join(dir, name), own); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
