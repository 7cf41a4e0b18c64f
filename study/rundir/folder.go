package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/study/plan"
)

// A Folder is a run folder.
type Folder struct{ dir string }

// Create makes the folder and finds out, before any work is done, that it can be written.
func Create(dir string) (Folder, error) {
	f := Folder{dir}
	for _, sub := range []string{"cells", "states"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			return f, fmt.Errorf("the run folder: %w", err)
		}
	}
	now, err := folderClock(filepath.Join(dir, "cells"))
	if err != nil {
		return f, fmt.Errorf("the run folder cannot be written: %w", err)
	}
	f.removeStale(now)
	return f, nil
}

// folderClock is the time by the clock that stamps the files of a folder. That it cannot be written
// is an error.
func folderClock(dir string) (time.Time, error) {
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return time.Time{}, err
	}
	defer probe.Close()
	info, err := probe.Stat()
	if removing := os.Remove(probe.Name()); err == nil {
		err = removing
	}
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// staleAfter is how old a temporary file is that no living run still writes.
const staleAfter = time.Hour

// removeStale removes the temporary files of runs that were killed. One that cannot be removed
// harms nobody. now is by the clock that stamps the folder's files: this machine's may be hours
// from it, and a living run's file would look old.
func (f Folder) removeStale(now time.Time) {
	for _, sub := range []string{"", "cells", "states", "shared"} {
		files, _ := f.list(sub, ".", ".tmp")
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && now.Sub(info.ModTime()) > staleAfter {
				os.Remove(file)
			}
		}
	}
}

// list finds the files of a part of the folder by how their names start and end. Unlike a glob it
// does not mind what the folder itself is called.
func (f Folder) list(sub, prefix, suffix string) ([]string, error) {
	entries, err := os.ReadDir(f.Path(sub))
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			out = append(out, f.Path(sub, e.Name()))
		}
	}
	return out, err
}

func (f Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

func (f Folder) cell(c *plan.Cell) string { return f.Path("cells", c.Key+".json") }

// state is where a cell's state stands: that of a part, or, for a procedure, which is not divided,
// its checkpoint.
func (f Folder) state(c *plan.Cell, p plan.Part) string {
	if c.Procedure != nil {
		p = plan.Part{}
	}
	return f.Path("states", c.Key+"."+p.String()+".bin")
}

// shared is where cells of a procedure keep what they have in common.
func (f Folder) shared(name string) string { return f.Path("shared", name+".bin") }

// removeShared removes what cells had in common, once all are done. Where another run of the study
// saves there meanwhile, that one removes it when it ends.
func (f Folder) removeShared() error {
	if err := os.RemoveAll(f.Path("shared")); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// HasCell reports whether the folder holds a whole record of the cell.
func (f Folder) HasCell(c *plan.Cell) bool {
	_, err := f.readCell(c)
	return err == nil
}

func (f Folder) writeText(name, text string) error {
	return f.write(name, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// write writes a file of the folder whole or not at all.
func (f Folder) write(name string, fill func(w io.Writer) error) error {
	return atomicfile.WriteFunc(f.Path(name), fill)
}

func (f Folder) writeJSON(name string, v any) error {
	return f.write(name, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(v)
	})
}
