package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestCacheEvictsLeastRecentlyUsed checks which values a cache of at most 10 bytes makes again. A
// stamp stands for the times and sizes of the files that a value is made from: a value with another
// stamp is made again.
func TestCacheEvictsLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	c := newCache(10, func(text []byte) int { return len(text) })
	made := ""
	get := func(name, stamp string, size int) string {
		text, err := c.get(name, stamp, func() ([]byte, error) {
			made += name
			return []byte(strings.Repeat(stamp, size)), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	get("a", "1", 4)
	get("b", "1", 4)
	get("a", "1", 4) // cached
	get("c", "1", 4) // evicts b
	get("a", "1", 4) // cached
	get("b", "1", 4) // made again, evicts c
	if got := get("a", "2", 4); got != "2222" {
		t.Errorf("after the files changed the text is %q, want %q", got, "2222")
	}
	get("d", "1", 11) // larger than the cache: not kept
	get("d", "1", 11)
	if made != "abcbadd" {
		t.Errorf("made in the order %s, want %s", made, "abcbadd")
	}
	if _, err := c.get("e", "1", func() ([]byte, error) { return nil, errors.New("no") }); err == nil {
		t.Error("a value that cannot be made: no error")
	}
	if got := get("e", "1", 1); got != "1" {
		t.Errorf("after an error: %q, want %q", got, "1")
	}
}

// TestCacheIsBounded checks that concurrent requests in any order get the text of their name and
// stamp, and that the cache does not exceed its limit of 50 bytes.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newCache(50, func(text []byte) int { return len(text) })
		names := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 40).Draw(rt, "names")
		var wait sync.WaitGroup
		for i, n := range names {
			wait.Go(func() {
				name, stamp := fmt.Sprint(n), fmt.Sprint(i%3)
				text, err := c.get(name, stamp, func() ([]byte, error) { return []byte(strings.Repeat(name+stamp+" ", 3*n)), nil })
				if err != nil || string(text) != strings.Repeat(name+stamp+" ", 3*n) {
					rt.Errorf("text %q, error %v; want %q", text, err, strings.Repeat(name+stamp+" ", 3*n))
				}
			})
		}
		wait.Wait()
		held := 0
		for _, e := range c.kept.Values() {
			held += len(e.value)
		}
		if held != c.size || held > 50 {
			rt.Errorf("%d bytes are held, counted as %d, want at most 50", held, c.size)
		}
	})
}

// TestPagesAreCachedWhileFilesAreUnchanged checks that the page of a run and its report are made
// once while times and sizes of the files stay the same, and again when one changes. newFolder and
// finish write the folder of a finished run with scores under the transformations gray and tilt.
func TestPagesAreCachedWhileFilesAreUnchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newFolder(t, dir, "net").finish()
	url := startServer(t, Options{Dirs: []string{dir}})
	page := url + "/runs/" + ids(t, url, "")[filepath.Base(dir)]
	file := filepath.Join(dir, "scores.csv")
	before := [2]string{getPage(t, page), getPage(t, page+"/report")}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	rewrite := func(text string, at time.Time) {
		f.write("scores.csv", text)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	sameSize := strings.ReplaceAll(string(raw), "tilt", "turn")
	rewrite(sameSize, info.ModTime())
	if after := [2]string{getPage(t, page), getPage(t, page+"/report")}; after != before {
		t.Error("a page is made again for files of the same time and size")
	}
	rewrite(sameSize, info.ModTime().Add(time.Second))
	if getPage(t, page+"/report") == before[1] {
		t.Error("the report is not made again after a file was written")
	}
	// The last row is repeated.
	rewrite(string(raw)+string(raw[strings.LastIndex(strings.TrimSpace(string(raw)), "\n")+1:]), info.ModTime())
	if getPage(t, page) == before[0] {
		t.Error("the page is not made again after a file changed its size")
	}
	if err := os.Mkdir(filepath.Join(dir, "pictures"), 0o777); err != nil {
		t.Fatal(err)
	}
	reportBefore := getPage(t, page+"/report")
	f.write("pictures/broken.png", "no image")
	if getPage(t, page+"/report") == reportBefore {
		t.Error("the report is not made again after an image was added")
	}
}

// TestRecordReplacedAtSameTime checks that the record of a run (run.json) that is replaced without
// a change of its modification time is read again. A library holds the runs of folders.
func TestRecordReplacedAtSameTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newFolder(t, dir, "net")
	l, err := openLibrary([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	run := l.runs()[0]
	stamp := time.Now()
	for seed := uint64(1); seed < 4; seed++ {
		f.record.Seed = seed
		f.saveRecord()
		if err := os.Chtimes(filepath.Join(dir, "run.json"), stamp, stamp); err != nil {
			t.Fatal(err)
		}
		if record, err := run.record(); err != nil || record.Seed != seed {
			t.Errorf("the record of seed %d has seed %d, %v", seed, record.Seed, err)
		}
	}
}
