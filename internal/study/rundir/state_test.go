package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
)

// writeExample writes a state file, which holds the states of accumulators (running sums), or
// scores, of the layers of a cell. A cell is a unit of work of a study, such as one measure on one
// model, data set and transformation (plan.Cell). The file is that of shard 2 of 3, a third of the
// samples, of which there are N in all. Seen is the position in their order that an entry reached.
func writeExample(t testing.TB, path string) []byte {
	t.Helper()
	index := &stateIndex{Cell: "c", Shard: plan.Shard{Index: 2, Count: 3}, N: 7, Unreadable: []string{"x"},
		Entries: []stateEntry{{Layer: "a", Seen: 4}, {Layer: "b", Seen: 7, Scored: true}, {Layer: "empty"}}}
	payload := map[string]string{"a": "state of a", "b": "scores of b"}
	err := writeState(path, index, func(w io.Writer, e *stateEntry) error {
		_, err := io.WriteString(w, payload[e.Layer])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestStateFileRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.bin")
	writeExample(t, path)
	f, err := openState(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for layer, want := range map[string]string{"a": "state of a", "b": "scores of b", "empty": ""} {
		got, err := f.bytes(f.entry(layer))
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q, error %v; want %q", layer, got, err, want)
		}
	}
	if f.Cell != "c" || f.Shard != (plan.Shard{Index: 2, Count: 3}) || f.N != 7 || f.entry("b").Seen != 7 || !f.entry("b").Scored || f.entry("none") != nil {
		t.Errorf("the index is %+v, not as written", f.stateIndex)
	}
}

func TestDamagedStateFilesAreErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raw := writeExample(t, filepath.Join(dir, "s.bin"))
	damaged := map[string][]byte{"empty": nil, "text": []byte("this is a text file, and a long one at that")}
	for n := range raw {
		damaged[fmt.Sprintf("cut to %d", n)] = raw[:n]
	}
	damaged["longer"] = append(slices.Clone(raw), 0)
	for name, data := range damaged {
		var index stateIndex
		if err := readStateIndex(bytes.NewReader(data), int64(len(data)), &index); !errors.Is(err, errDamaged) {
			t.Errorf("%s: error %v, want %v", name, err, errDamaged)
		}
	}
}

func TestFailedWriteLeavesTheOldStateFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.bin")
	want := writeExample(t, path)
	full := errors.New("no space left on device")
	err := writeState(path, &stateIndex{Entries: []stateEntry{{}}}, func(io.Writer, *stateEntry) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("error %v, want %v", err, full)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the old file is %q, error %v; want it unchanged", got, err)
	}
}

// TestShardsCoverEveryPositionOnceInWholeBlocks checks the ranges of positions of the shards (the
// parts of a run on several machines) in the order in which samples are read. A measure.Layout
// divides that order into blocks of up to 32 samples.
func TestShardsCoverEveryPositionOnceInWholeBlocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := measure.NewLayout(rapid.IntRange(1, 5000).Draw(t, "n"))
		count := rapid.IntRange(1, 40).Draw(t, "count")
		next := 0
		for i := 1; i <= count; i++ {
			lo, hi := plan.Shard{Index: i, Count: count}.Positions(l)
			if lo != next || hi < lo || lo != l.N && lo%l.Block != 0 {
				t.Fatalf("shard %d of %d of %+v is %d to %d, want whole blocks from %d", i, count, l, lo, hi, next)
			}
			next = hi
		}
		if next != l.N {
			t.Fatalf("%d shards of %+v end at %d, want %d", count, l, next, l.N)
		}
	})
}

func FuzzReadStateIndex(f *testing.F) {
	f.Add(writeExample(f, filepath.Join(f.TempDir(), "s.bin")))
	f.Add([]byte(stateMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		var index stateIndex
		if err := readStateIndex(bytes.NewReader(data), int64(len(data)), &index); err != nil {
			return
		}
		for i := range index.Entries {
			e := &index.Entries[i]
			if e.Offset+e.Size > int64(len(data)) {
				t.Fatalf("entry %+v reaches beyond %d bytes", e, len(data))
			}
		}
	})
}

// TestCreateRemovesTemporaryFilesOfKilledRuns checks that Create removes temporary files older than
// atomicfile.StaleAfter from all folders of a run, and leaves newer ones.
func TestCreateRemovesTemporaryFilesOfKilledRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Create(dir, t.Logf); err != nil {
		t.Fatal(err)
	}
	recent := filepath.Join(dir, "cells", ".b.json.0123456789abcdef.tmp")
	var old []string
	for _, sub := range []string{"", "states", "failures", "shared", "pictures/views", "pictures/models", "cluster/1", "cluster/1/tasks"} {
		old = append(old, filepath.Join(dir, sub, ".a.0123456789abcdef.tmp"))
	}
	past := time.Now().Add(-2 * atomicfile.StaleAfter)
	for _, f := range append(old, recent) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o777), os.WriteFile(f, nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		if f != recent {
			os.Chtimes(f, past, past)
		}
	}
	if _, err := Create(dir, t.Logf); err != nil {
		t.Fatal(err)
	}
	for _, f := range old {
		if _, err := os.Stat(f); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", f, err)
		}
	}
	if _, err := os.Stat(recent); err != nil {
		t.Errorf("the temporary file that a run may still write is gone: %v", err)
	}
}

// TestFinishedCellLeavesNoStates checks that the state files of a finished cell are removed, also
// those of earlier shards, and that those of another cell stay. A file is named after the key of
// its cell (here c or other) and the shard. Resume notes which files are there.
func TestFinishedCellLeavesNoStates(t *testing.T) {
	t.Parallel()
	f, err := Create(t.TempDir(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	w := Writer{Plan: &plan.Plan{Cells: []*plan.Cell{{Key: "c", Data: &plan.Data{Unreadable: &plan.UnreadableSamples{}}}}}, Folder: f}
	for _, name := range []string{"c.1of2.bin", "c.2of2.bin", "c.3of4.bin", "other.1of2.bin"} {
		writeExample(t, f.Path("states", name))
	}
	if err := w.Resume(); err != nil {
		t.Fatal(err)
	}
	writeExample(t, f.Path("states", "c.all.bin")) // a checkpoint of this run
	if err := w.removeStates(w.Plan.Cells[0]); err != nil {
		t.Fatal(err)
	}
	left, err := f.list("states", "", "")
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "other.1of2.bin" {
		t.Errorf("files %v, error %v; want only the other cell's", left, err)
	}
}
