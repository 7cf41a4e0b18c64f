package powerloss

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/filesys"
)

// read returns the files of a folder, by path, and its empty folders, with a "/" after the name.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			inside := read(t, path)
			if len(inside) == 0 {
				out[e.Name()+"/"] = ""
			}
			for name, text := range inside {
				out[e.Name()+"/"+name] = text
			}
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(raw)
	}
	return out
}

// TestStates compares the folders that a power loss leaves after each change of a small recording
// (the changes of a folder, in order) with those listed by hand.
func TestStates(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old"), []byte("1"), 0o666); err != nil {
		t.Fatal(err)
	}
	log, stop, err := Record(dir)
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := filesys.Create(in("new"), 0o666)
	must(err)
	_, err = f.Write([]byte("ab"))
	must(err)
	must(f.Sync())
	_, err = f.Write([]byte("cd"))
	must(err)
	must(f.Close())
	must(filesys.Rename(in("new"), in("old")))
	filesys.SyncDir(dir)
	must(filesys.Remove(in("old")))
	must(filesys.MkdirAll(in("sub"), 0o777))
	stop()
	type files map[string]string
	// The files on the disk if the power fails after each change: if nothing is lost, if everything
	// unsynced is lost, and if only unsynced data of files are lost (see Loss).
	want := []struct{ nothing, unsynced, data files }{
		{files{"old": "1"}, files{"old": "1"}, files{"old": "1"}},                             // before the first change
		{files{"old": "1", "new": ""}, files{"old": "1"}, files{"old": "1", "new": ""}},       // create
		{files{"old": "1", "new": "ab"}, files{"old": "1"}, files{"old": "1", "new": ""}},     // write
		{files{"old": "1", "new": "ab"}, files{"old": "1"}, files{"old": "1", "new": "ab"}},   // sync
		{files{"old": "1", "new": "abcd"}, files{"old": "1"}, files{"old": "1", "new": "ab"}}, // write
		{files{"old": "abcd"}, files{"old": "1"}, files{"old": "ab"}},                         // rename
		{files{"old": "abcd"}, files{"old": "ab"}, files{"old": "ab"}},                        // sync of the folder
		{files{}, files{"old": "ab"}, files{}},                                                // remove
		{files{"sub/": ""}, files{"old": "ab"}, files{"sub/": ""}},                            // mkdir
		{files{"sub/": ""}, files{"sub/": ""}, files{"sub/": ""}},                             // MkdirAll syncs the parent
	}
	disk, r := log.Replay(), rand.New(rand.NewPCG(1, 2))
	for i, w := range want {
		for loss, want := range map[Loss]files{Nothing: w.nothing, Unsynced: w.unsynced, FileData: w.data} {
			out := filepath.Join(t.TempDir(), "out")
			if _, err := disk.Write(out, loss, r); err != nil {
				t.Fatal(err)
			}
			if got := read(t, out); !maps.Equal(got, want) {
				t.Errorf("after %d changes, %v: %v, want %v", i, loss, got, want)
			}
		}
		more, err := disk.Next()
		if err != nil || more != (i < len(want)-1) {
			t.Fatalf("change %d: %v, %v", i, more, err)
		}
	}
}

// TestAtomicFileSurvives checks that a file that package atomicfile replaces is the old or the new
// one after every loss of power.
func TestAtomicFileSurvives(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x")
	if err := atomicfile.Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	log, stop, err := Record(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	stop()
	seen := map[string]bool{}
	r := rand.New(rand.NewPCG(1, 2))
	for disk, more := log.Replay(), true; more; {
		for _, loss := range Losses {
			for range 5 { // one of the losses is random
				out := filepath.Join(t.TempDir(), "out")
				if _, err := disk.Write(out, loss, r); err != nil {
					t.Fatal(err)
				}
				text := read(t, out)["x"]
				if text != "old" && text != "new" {
					t.Fatalf("%v leaves %q", loss, text)
				}
				seen[text] = true
			}
		}
		if more, err = disk.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if !seen["old"] || !seen["new"] {
		t.Errorf("the losses left %v, want both the old and the new file", seen)
	}
}
