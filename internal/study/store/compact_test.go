package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

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

// TestSupersededRecordsAreRemoved checks that replaced records do not fill the disk, whether all
// are replaced in turn or a few again and again, and that dropped ones leave no log.
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

// TestLogsInUseStay checks that logs of a process that runs are neither removed nor moved, and
// those of one that has ended are.
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
