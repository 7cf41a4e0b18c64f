package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"testing"
)

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

// TestCutAtEveryByte cuts a log at every byte. The records before are read, and a process can go
// on.
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
