package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRemoveStale(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	past := time.Now().Add(-2 * StaleAfter)
	for name, age := range map[string]time.Time{".log.csv.0123456789abcdef.tmp": past, ".writable-1": past, ".young.tmp": time.Now(), "data.tmp": past, ".hidden": past} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		os.Chtimes(path, age, age)
	}
	RemoveStale(dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 || left[0].Name() != ".hidden" || left[1].Name() != ".young.tmp" || left[2].Name() != "data.tmp" {
		t.Errorf("%v, %v", left, err)
	}
}
