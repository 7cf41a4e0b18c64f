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

func TestKeptForgetsWhatWasAskedForLongestAgo(t *testing.T) {
	t.Parallel()
	k := newPageCache(10)
	made := ""
	get := func(name, stamp string, size int) string {
		text, err := k.get(name, stamp, func() ([]byte, error) {
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
	get("a", "1", 4) // kept
	get("c", "1", 4) // b goes
	get("a", "1", 4) // kept
	get("b", "1", 4) // made again, c goes
	if got := get("a", "2", 4); got != "2222" {
		t.Errorf("of other files the text is still %q", got)
	}
	get("d", "1", 11) // too large, and nothing else fits beside it
	get("d", "1", 11)
	if made != "abcbadd" {
		t.Errorf("made in the order %s", made)
	}
	if _, err := k.get("e", "1", func() ([]byte, error) { return nil, errors.New("no") }); err == nil {
		t.Error("an error is lost")
	}
	if got := get("e", "1", 1); got != "1" {
		t.Errorf("after an error: %q", got)
	}
}

// TestKeptIsBounded checks that whatever is asked for in whatever order, by several at once, is
// what its stamp says, and no more is held than is allowed.
func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		k := newPageCache(50)
		asked := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 40).Draw(rt, "asked")
		var wait sync.WaitGroup
		for i, n := range asked {
			wait.Go(func() {
				name, stamp := fmt.Sprint(n), fmt.Sprint(i%3)
				text, err := k.get(name, stamp, func() ([]byte, error) { return []byte(strings.Repeat(name+stamp+" ", 3*n)), nil })
				if err != nil || string(text) != strings.Repeat(name+stamp+" ", 3*n) {
					rt.Errorf("%q, %v", text, err)
				}
			})
		}
		wait.Wait()
		held := 0
		for _, m := range k.entries {
			held += len(m.text)
		}
		if held != k.size || held > 50 {
			rt.Errorf("%d bytes are held, counted as %d", held, k.size)
		}
	})
}

// TestPagesAreKeptWhileFilesStay checks that the page of a run and its report are made once for
// files that stay as they are, by their times and sizes, and again when one changes.
func TestPagesAreKeptWhileFilesStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newFolder(t, dir, "net").finish()
	url := site(t, Options{Dirs: []string{dir}})
	page := url + "/runs/" + ids(t, url, "")[filepath.Base(dir)]
	file := filepath.Join(dir, "scores.csv")
	before := [2]string{good(t, page), good(t, page+"/report")}
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
	other := strings.ReplaceAll(string(raw), "tilt", "turn")
	rewrite(other, info.ModTime())
	if after := [2]string{good(t, page), good(t, page+"/report")}; after != before {
		t.Error("a page is made again though time and size of the files are the same")
	}
	rewrite(other, info.ModTime().Add(time.Second))
	if good(t, page+"/report") == before[1] {
		t.Error("the report is not made again of a file that was written later")
	}
	rewrite(string(raw)+string(raw[strings.LastIndex(strings.TrimSpace(string(raw)), "\n")+1:]), info.ModTime())
	if good(t, page) == before[0] {
		t.Error("the page is not made again of a file of another size")
	}
	if err := os.Mkdir(filepath.Join(dir, "pictures"), 0o777); err != nil {
		t.Fatal(err)
	}
	was := good(t, page+"/report")
	f.write("pictures/broken.png", "no image")
	if good(t, page+"/report") == was {
		t.Error("the report is not made again of an image that was added")
	}
}

// TestRecordReplacedWithinATick checks that a record that takes the place of another between two
// ticks of the clock that stamps files is read anew.
func TestRecordReplacedWithinATick(t *testing.T) {
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
		f.save()
		if err := os.Chtimes(filepath.Join(dir, "run.json"), stamp, stamp); err != nil {
			t.Fatal(err)
		}
		if record, err := run.record(); err != nil || record.Seed != seed {
			t.Errorf("the record of seed %d has seed %d, %v", seed, record.Seed, err)
		}
	}
}
