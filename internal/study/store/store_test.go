package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/filesys"
)

// opened returns a Store that has read the folder.
func opened(t testing.TB, dir string) *Store {
	t.Helper()
	s := New(dir, Options{Verify: true})
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, s *Store, records ...Record) {
	t.Helper()
	if err := s.Put(records...); err != nil {
		t.Fatal(err)
	}
}

// contents returns the bodies and parts of all records as text, by key.
func contents(t testing.TB, s *Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, key := range s.Keys() {
		it, err := s.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		text := string(it.Body)
		for _, p := range it.parts {
			data, err := it.Bytes(p.name)
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf(" %s=%s", p.name, data)
		}
		out[key] = text
	}
	return out
}

func logFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRecordsAreReadBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	s := opened(t, dir)
	large := bytes.Repeat([]byte("0123456789abcdef"), 3*maxData/16+1)
	put(t, s, Record{Key: "a", Body: []byte("body a"), Parts: []Part{{Name: "empty"}, {Name: "small", Data: []byte("x")}, {Name: "large", Write: func(w io.Writer) error {
		for chunk := range slices.Chunk(large, 1000) {
			if _, err := w.Write(chunk); err != nil {
				return err
			}
		}
		return nil
	}}, {Name: "last", Data: []byte("y")}}}, Record{Key: "b"})
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	inRoot := In(root, "new")
	if err := inRoot.Refresh(); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Store{"written": s, "reopened": opened(t, dir), "in a root": inRoot} {
		a, err := s.Get("a")
		if err != nil {
			t.Fatal(err)
		}
		for part, want := range map[string]string{"empty": "", "small": "x", "large": string(large), "last": "y"} {
			got, err := a.Bytes(part)
			if size, ok := a.Size(part); err != nil || string(got) != want || !ok || size != int64(len(want)) {
				t.Errorf("%s: part %s has %d bytes, size %d, error %v; want %d bytes", name, part, len(got), size, err, len(want))
			}
		}
		if b, err := s.Get("b"); err != nil || len(b.Body) > 0 || b.Version != 1 || b.Part("none") != nil {
			t.Errorf("%s: b is %+v, error %v", name, b, err)
		}
		if none, err := a.Bytes("none"); none != nil || err != nil {
			t.Errorf("%s: a missing part is %q, error %v", name, none, err)
		}
		if _, err := s.Get("c"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a missing record: error %v", name, err)
		}
	}
}

// TestLikeAMap compares a store that several processes write with a map, under puts, drops,
// compactions and kills in random order.
func TestLikeAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "store-*")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		stores := []*Store{New(dir, Options{Verify: true}), New(dir, Options{Verify: rapid.Bool().Draw(t, "verify"), Name: "some"})}
		want := map[string]string{}
		n := 0
		key := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		check := func(s *Store) {
			if err := s.Refresh(); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, key := range s.Keys() {
				it, err := s.Get(key)
				if err != nil {
					t.Fatal(err)
				}
				part, err := it.Bytes("part")
				if err != nil || string(part) != string(it.Body)+"!" {
					t.Fatalf("part %q of %q, error %v", part, it.Body, err)
				}
				got[key] = string(it.Body)
			}
			if !maps.Equal(got, want) {
				t.Fatalf("the store holds %v, want %v", got, want)
			}
		}
		some := func(t *rapid.T) int { return rapid.IntRange(0, len(stores)-1).Draw(t, "store") }
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				s := stores[some(t)]
				if err := s.Refresh(); err != nil { // so that the version is above that of the other process
					t.Fatal(err)
				}
				n++
				k, body := key.Draw(t, "key"), fmt.Sprint(n)
				if err := s.Put(Record{Key: k, Body: []byte(body), Parts: []Part{{Name: "part", Data: []byte(body + "!")}}}); err != nil {
					t.Fatal(err)
				}
				want[k] = body
			},
			"compact": func(t *rapid.T) {
				if err := stores[some(t)].Compact(nil); err != nil {
					t.Fatal(err)
				}
			},
			"close": func(t *rapid.T) {
				i := some(t)
				if err := stores[i].Close(); err != nil {
					t.Fatal(err)
				}
				stores[i] = New(dir, Options{Verify: true})
			},
			"kill": func(t *rapid.T) { // the locks end, the log stays, with a part of a record at its end
				i := some(t)
				stores[i].writing.Lock()
				if w := stores[i].own; w != nil {
					w.file.Write(appendHeader(nil, dataMark, make([]byte, 100))[:rapid.IntRange(0, headerSize).Draw(t, "written")])
					w.close()
				}
				for _, w := range stores[i].former {
					w.close()
				}
				stores[i] = New(dir, Options{Verify: true})
			},
			"": func(t *rapid.T) { check(stores[some(t)]) },
		})
		for _, s := range stores {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		last := New(dir, Options{Verify: true})
		check(last)
		if err := last.Compact(nil); err != nil {
			t.Fatal(err)
		}
		check(last)
		if names, err := last.names(); err != nil || len(names) > 1 {
			t.Fatalf("logs %v after compaction, error %v", names, err)
		}
	})
}

// TestDroppedRecord checks that a dropped record stays dropped when its log is read again, and that
// a new one has a larger version.
func TestDroppedRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, opened(t, dir), Record{Key: "a", Version: 7})
	s := opened(t, dir)
	s.Drop("a", "none")
	s.mu.Lock()
	s.forget()
	s.mu.Unlock()
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if v, ok := s.Version("a"); ok || v != 7 {
		t.Errorf("version %d, %v; want 7, false", v, ok)
	}
	put(t, s, Record{Key: "a", Version: 6}) // does not count
	if _, ok := s.Version("a"); ok {
		t.Error("a record of an earlier version than the dropped one counts")
	}
	put(t, s, Record{Key: "a"})
	if v, ok := s.Version("a"); !ok || v != 8 {
		t.Errorf("version %d, %v; want 8, true", v, ok)
	}
}

// TestFailedPutLeavesNothing makes each change of a put fail.
func TestFailedPutLeavesNothing(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	for _, op := range []filesys.Op{filesys.OpCreate, filesys.OpWrite, filesys.OpSync} {
		for _, first := range []bool{true, false} {
			dir := t.TempDir()
			s := opened(t, dir)
			if !first {
				put(t, s, Record{Key: "a", Body: []byte("old")})
			}
			before := contents(t, opened(t, dir))
			stop, err := filesys.Observe(dir, func(c filesys.Change, do func() error) error {
				if c.Op == op && strings.HasSuffix(c.Path, suffix) {
					return full
				}
				return do()
			})
			if err != nil {
				t.Fatal(err)
			}
			err = s.Put(Record{Key: "a", Body: []byte("new")})
			stop()
			if op == filesys.OpCreate && !first {
				continue // nothing is created
			}
			if !errors.Is(err, full) {
				t.Errorf("%v fails, first %v: error %v, want %v", op, first, err, full)
			}
			again := opened(t, dir)
			if got := contents(t, again); !maps.Equal(got, before) {
				t.Errorf("%v fails, first %v: the folder holds %v, want %v", op, first, got, before)
			}
			for _, l := range again.Logs() {
				if l.Tail > 0 || l.Damaged > 0 || len(l.Records) == 0 {
					t.Errorf("%v fails, first %v: leaves %+v", op, first, l)
				}
			}
			put(t, s, Record{Key: "a", Body: []byte("newer")})
			if got := contents(t, opened(t, dir)); got["a"] != "newer" {
				t.Errorf("%v fails, first %v: a later put gives %v", op, first, got)
			}
		}
	}
}

// TestOnlySomeLogsAreRead checks that a process reads only the logs whose names it asks for, until
// it reads all.
func TestOnlySomeLogsAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"", "a.1of2", "b.1of2"} {
		put(t, New(dir, Options{Name: name}), Record{Key: "of " + name})
	}
	s := New(dir, Options{Verify: true, Name: "a.1of2", Reads: func(name string) bool { return name == "" || name == "a.1of2" }})
	if err := s.Refresh(); err != nil || len(s.Keys()) != 2 {
		t.Errorf("read %q, error %v, want two records", s.Keys(), err)
	}
	put(t, s, Record{Key: "own"})
	s.Read(nil)
	if err := s.Refresh(); err != nil || len(s.Keys()) != 4 {
		t.Errorf("read %q, error %v, want all four records", s.Keys(), err)
	}
}

func TestFailedWriterOfAPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, dir)
	put(t, s, Record{Key: "a"})
	stopped := errors.New("stopped")
	err := s.Put(Record{Key: "b", Parts: []Part{{Name: "p", Write: func(w io.Writer) error {
		w.Write(make([]byte, 3*maxData))
		return stopped
	}}}})
	if !errors.Is(err, stopped) {
		t.Errorf("error %v, want %v", err, stopped)
	}
	put(t, s, Record{Key: "c"})
	if got := opened(t, dir); len(got.Keys()) != 2 || got.Logs()[0].Damaged > 0 || got.Logs()[0].Tail > 0 {
		t.Errorf("logs %+v, want the records a and c in one", got.Logs())
	}
}
