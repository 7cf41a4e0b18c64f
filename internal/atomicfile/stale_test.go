package atomicfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestWriteRemovesStaleFiles checks that the first write into a folder removes the temporary files
// that killed processes left there. It keeps recent temporary files, which another process may
// still write, and files whose names are not those of temporary files of this program.
func TestWriteRemovesStaleFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	past := time.Now().Add(-2 * StaleAfter) // files unchanged for StaleAfter, an hour, are stale
	for name, modified := range map[string]time.Time{
		// Temporary and old; temporary and recent; old files of other programs.
		".log.csv.0123456789abcdef.tmp": past, ".writable-1": past, ".store-12.tmp": past, ".speed-345.tmp": past,
		".recent.csv.0123456789abcdef.tmp": time.Now(), ".writable-2": time.Now(),
		"data.tmp": past, ".hidden": past, ".swap.tmp": past, ".report.2026.tmp": past, ".writable-folder": past,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(filepath.Join(dir, "scores.csv"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := []string{".hidden", ".recent.csv.0123456789abcdef.tmp", ".report.2026.tmp", ".swap.tmp", ".writable-2", ".writable-folder", "data.tmp", "scores.csv"}
	if !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}
