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

	"golang.org/x/sync/errgroup"
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

// TestCompactionBesideWriters checks that no record is lost while processes append and compact at
// once, without locks.
func TestCompactionBesideWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var group errgroup.Group
	const writers, records = 4, 60
	for i := range writers {
		group.Go(func() error {
			s := New(dir, Options{Verify: true})
			for j := range records {
				if err := s.Put(Record{Key: fmt.Sprintf("%d-%d", i, j), Body: []byte("body")}); err != nil {
					return err
				}
				if s.own != nil && s.own.lock != nil { // as on a file system without locks
					s.own.lock.Close()
					s.own.lock = nil
				}
				if j%10 == 9 {
					if err := s.Compact(nil); err != nil && !errors.Is(err, errMoved) {
						return err
					}
				}
			}
			return s.Close()
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	s := opened(t, dir)
	if n := len(contents(t, s)); n != writers*records {
		t.Errorf("%d records, want %d", n, writers*records)
	}
	if err := s.Compact(nil); err != nil || len(logFiles(t, dir)) != 1 {
		t.Errorf("logs %v after compaction, error %v", logFiles(t, dir), err)
	}
	if n := len(contents(t, opened(t, dir))); n != writers*records {
		t.Errorf("%d records after compaction, want %d", n, writers*records)
	}
}

// TestSupersededRecordsAreRemoved checks that replaced records do not fill the disk, whether all are
// replaced in turn or a few again and again, and that dropped ones leave no log.
func TestSupersededRecordsAreRemoved(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]int{"all": 10, "some": 3} {
		dir := t.TempDir()
		s := opened(t, dir)
		data := bytes.Repeat([]byte("x"), maxData/2)
		const records = 10
		live := int64(records * len(data))
		for round := range 50 {
			for i := range records {
				if round == 0 || i < replaced {
					put(t, s, Record{Key: fmt.Sprint(i), Body: fmt.Append(nil, round), Parts: []Part{{Name: "p", Data: data}}})
				}
			}
			var size int64
			for _, file := range logFiles(t, dir) {
				info, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				size += info.Size()
			}
			if limit := 3*live + 2*maxGarbage; size > limit {
				t.Fatalf("%s: %d bytes on the disk after round %d, want at most %d", name, size, round, limit)
			}
		}
		got := contents(t, opened(t, dir))
		for i := range records {
			want := "49"
			if i >= replaced {
				want = "0"
			}
			if body, _, _ := strings.Cut(got[fmt.Sprint(i)], " "); body != want {
				t.Errorf("%s: record %d is of round %s, want %s", name, i, body, want)
			}
		}
		s.Drop(s.Keys()...)
		if err := s.Close(); err != nil || len(logFiles(t, dir)) > 0 {
			t.Errorf("%s: after all records were dropped: error %v, files %v", name, err, logFiles(t, dir))
		}
	}
}

// TestLogsInUseStay checks that logs of a process that runs are neither removed nor moved, and those
// of one that has ended are.
func TestLogsInUseStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running := opened(t, dir)
	put(t, running, Record{Key: "a"})
	before := logFiles(t, dir)
	other := opened(t, dir)
	if logs := other.Logs(); len(logs) != 1 || !logs[0].InUse || fmt.Sprint(logs[0].Records) != "[a]" {
		t.Errorf("logs %+v, want one in use with the record a", logs)
	}
	other.Drop("a")
	if err := errors.Join(other.Sweep(), other.Compact(nil)); err != nil || !slices.Equal(logFiles(t, dir), before) {
		t.Errorf("logs %v, error %v; want %v", logFiles(t, dir), err, before)
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	other = opened(t, dir)
	other.Drop("a")
	if err := other.Sweep(); err != nil || len(logFiles(t, dir)) > 0 {
		t.Errorf("files %v, error %v after the process ended; want none", logFiles(t, dir), err)
	}
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

func TestDamagedLogIsDisposedOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, dir)
	put(t, s, Record{Key: "a", Body: []byte("body of a")}, Record{Key: "b", Parts: []Part{{Name: "p", Data: []byte("part of b")}}}, Record{Key: "c"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := logFiles(t, dir)[0]
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw[bytes.Index(raw, []byte("part of b"))] ^= 1
	if err := os.WriteFile(file, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	unverified := New(dir, Options{})
	if err := unverified.Refresh(); err != nil {
		t.Fatal(err)
	}
	it, err := unverified.Get("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := it.Bytes("p"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged part: error %v, want %v", err, ErrDamaged)
	}
	s = opened(t, dir)
	if err := s.Damage(); err == nil || !strings.Contains(err.Error(), "damaged in 1 places") {
		t.Errorf("a damaged log: error %v", err)
	}
	if l := s.Logs()[0]; l.Damaged != 1 || fmt.Sprint(l.Keys) != "[b]" || !s.Damaged("b") || s.Damaged("a") {
		t.Errorf("the log is %+v", l)
	}
	var disposed []string
	if err := s.Compact(func(path string) error {
		disposed = append(disposed, path)
		return os.Remove(path)
	}); err != nil || len(disposed) != 1 {
		t.Fatalf("disposed of %v, error %v; want one log", disposed, err)
	}
	if got := opened(t, dir); len(got.Keys()) != 2 || got.Logs()[0].Damaged > 0 {
		t.Errorf("after compaction the logs are %+v", got.Logs())
	}
}

// writeSmall writes a log of three records and returns its path and content.
func writeSmall(t testing.TB, dir string) (string, []byte) {
	t.Helper()
	s := opened(t, dir)
	for i := range 3 {
		put(t, s, Record{Key: fmt.Sprint(i), Body: fmt.Appendf(nil, "body %d", i), Parts: []Part{{Name: "p", Data: fmt.Appendf(nil, "part %d", i)}, {Name: "q", Data: []byte("x")}}})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := logFiles(t, dir)[0]
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, raw
}

// TestCutAtEveryByte cuts a log at every byte. The records before are read, and a process can go on.
func TestCutAtEveryByte(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, raw := writeSmall(t, dir)
	whole := contents(t, opened(t, dir))
	ends := []int64{}
	if _, err := scanLog(bytes.NewReader(raw), 0, int64(len(raw)), true, func(_ head, at span) { ends = append(ends, at.end) }); err != nil || len(ends) != 3 {
		t.Fatalf("records end at %v, error %v", ends, err)
	}
	for n := range raw {
		if err := os.WriteFile(file, raw[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for i, end := range ends {
			if int64(n) >= end {
				want[fmt.Sprint(i)] = whole[fmt.Sprint(i)]
			}
		}
		s := opened(t, dir)
		if got := contents(t, s); !maps.Equal(got, want) || s.Logs()[0].Damaged > 0 {
			t.Fatalf("cut to %d bytes: %v, want %v; %+v", n, got, want, s.Logs())
		}
		put(t, s, Record{Key: "new"})
		if err := s.Compact(nil); err != nil {
			t.Fatal(err)
		}
		want["new"] = ""
		if got := contents(t, opened(t, dir)); !maps.Equal(got, want) || len(logFiles(t, dir)) != 1 {
			t.Fatalf("cut to %d bytes, compacted: %v in %v, want %v", n, got, logFiles(t, dir), want)
		}
		s.Close()
		os.Remove(logFiles(t, dir)[0])
	}
}

// TestFlippedBits flips each bit of a log. At most one record is lost, and none is altered.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, raw := writeSmall(t, dir)
	whole := contents(t, opened(t, dir))
	for i := range 8 * len(raw) {
		raw[i/8] ^= 1 << (i % 8)
		if err := os.WriteFile(file, raw, 0o666); err != nil {
			t.Fatal(err)
		}
		raw[i/8] ^= 1 << (i % 8)
		s := opened(t, dir)
		got := contents(t, s)
		for key, text := range got {
			if text != whole[key] {
				t.Fatalf("bit %d: record %s is %q, want %q", i, key, text, whole[key])
			}
		}
		l := s.Logs()[0]
		if len(got) < len(whole)-1 || l.Damaged == 0 && l.Tail == 0 {
			t.Fatalf("bit %d: %d records of %d, %+v", i, len(got), len(whole), l)
		}
	}
}

func FuzzScan(f *testing.F) {
	_, raw := writeSmall(f, f.TempDir())
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	f.Add(append(bytes.Clone(raw[:40]), raw...))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := int64(0)
		found, err := scanLog(bytes.NewReader(data), 0, int64(len(data)), true, func(h head, at span) {
			if at.data < last || at.frame < at.data || at.end <= at.frame || at.end > int64(len(data)) {
				t.Fatalf("record %q at %+v, after %d, of %d bytes", h.key, at, last, len(data))
			}
			last = at.end
			it := &Item{Key: h.key, parts: h.parts, file: bytes.NewReader(data), span: at}
			for _, p := range h.parts {
				if got, err := io.ReadAll(it.Part(p.name)); err != nil && !errors.Is(err, ErrDamaged) {
					t.Fatalf("part %s: %d bytes, error %v", p.name, len(got), err)
				}
			}
		})
		if err != nil || found.End < last || found.End > int64(len(data)) {
			t.Fatalf("%+v after a record that ends at %d, error %v", found, last, err)
		}
	})
}

// TestSeenRecordsStayReadable checks that a record that a process has seen can be read while others
// append the same keys, compact, and remove logs, with locks and without.
func TestSeenRecordsStayReadable(t *testing.T) {
	t.Parallel()
	for _, locks := range []bool{true, false} {
		t.Run(fmt.Sprintf("locks %t", locks), func(t *testing.T) {
			t.Parallel()
			for range 15 {
				seenStayReadable(t, t.TempDir(), locks)
			}
		})
	}
}

func seenStayReadable(t *testing.T, dir string, locks bool) {
	const processes, records = 3, 12
	var group errgroup.Group
	for range processes {
		s := New(dir, Options{Permanent: true})
		done := make(chan struct{})
		group.Go(func() error {
			defer close(done)
			for j := range records {
				if err := s.Put(Record{Key: fmt.Sprint(j), Body: []byte("body"), Parts: []Part{{Name: "p", Data: []byte("part")}}}); err != nil {
					return err
				}
				if !locks && s.own != nil && s.own.lock != nil {
					s.own.lock.Close()
					s.own.lock = nil
				}
				if j%3 == 2 {
					if err := s.Compact(nil); err != nil && (locks || !errors.Is(err, errMoved)) {
						return err
					}
				}
			}
			return nil
		})
		group.Go(func() error {
			for {
				select {
				case <-done:
					return s.Refresh()
				default:
				}
				for _, key := range s.Keys() {
					it, err := s.Get(key)
					if err != nil {
						return err
					}
					if part, err := it.Bytes("p"); err != nil || string(part) != "part" {
						return fmt.Errorf("record %s: part %q, error %w", key, part, err)
					}
				}
				if err := s.Refresh(); err != nil {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, opened(t, dir)); len(got) != records {
		t.Fatalf("%d records, want %d", len(got), records)
	}
}
