package atomicfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestWriteRemovesStaleFiles checks that the first write into a folder removes what killed processes
// left there, and neither what may still be written nor files of others.
func TestWriteRemovesStaleFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	past := time.Now().Add(-2 * StaleAfter)
	for name, modified := range map[string]time.Time{
		".log.csv.0123456789abcdef.tmp": past, ".writable-1": past, ".store-12.tmp": past, ".speed-345.tmp": past,
		".young.csv.0123456789abcdef.tmp": time.Now(), ".writable-2": time.Now(),
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
	want := []string{".hidden", ".report.2026.tmp", ".swap.tmp", ".writable-2", ".writable-folder", ".young.csv.0123456789abcdef.tmp", "data.tmp", "scores.csv"}
	if !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}
