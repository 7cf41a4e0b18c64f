package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// filesByKey maps the key of a cell (a measure for one model, data set, transformation value and
// trial) to its files in all run folders. A shard is a part of the samples that one process
// measures; a merge combines the run folders of all shards. The folders are listed once,
// because listing them for each cell is slow with a thousand shards.
type filesByKey map[string][]string

// listByKey lists the files with a suffix in a subfolder of run folders. A run folder without the
// subfolder has none.
func listByKey(dirs []string, sub, suffix string) (filesByKey, error) {
	out := filesByKey{}
	for _, dir := range dirs {
		files, err := Folder{dir}.list(sub, "", suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, file := range files {
			out[cellKey(file)] = append(out[cellKey(file)], file)
		}
	}
	return out, nil
}

// removeStates removes the states (saved running sums) of a finished cell from the run's folder:
// the one that this run wrote (a merge writes none), and those that were there when the folder was
// listed. To list the folder for each cell would be slow, since it holds the states of all other
// cells.
func (r *Writer) removeStates(c *plan.Cell) error {
	var own string
	var removed []string
	if r.mergedDirs == nil {
		own = r.Folder.state(c, r.Options.Shard)
		removed = append(removed, own)
	}
	for _, file := range r.states[c.Key] {
		if file != own && strings.HasPrefix(file, r.Folder.Path("states")+string(filepath.Separator)) {
			removed = append(removed, file)
		}
	}
	return removeAll(removed)
}

// removeAll removes files. Files that do not exist are no error.
func removeAll(files []string) error {
	var errs []error
	for _, file := range files {
		if err := filesys.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// shardOf returns the shard in the name of a state file, KEY.INDEXofCOUNT.bin.
func shardOf(file string) (index, count int, ok bool) {
	name := strings.TrimSuffix(file, ".bin")
	first, second, found := strings.Cut(name[strings.LastIndexByte(name, '.')+1:], "of")
	index, err := strconv.Atoi(first)
	count, err2 := strconv.Atoi(second)
	return index, count, len(name) < len(file) && found && err == nil && err2 == nil
}

// findStates opens the states of all shards of a cell, in order. If there are states of several
// divisions (4 shards and 16, for example), it takes the division of which the largest fraction
// exists. It returns a *MissingShards if shards are missing or unfinished.
func findStates(c *plan.Cell, states filesByKey) ([]*stateFile, error) {
	byCount := map[int]map[int]string{} // files by the number of shards, then by shard
	for _, file := range states[c.Key] {
		i, count, ok := shardOf(file)
		if !ok {
			continue
		}
		if byCount[count] == nil {
			byCount[count] = map[int]string{}
		}
		if other := byCount[count][i]; other == "" || !holdsShard(c, other, plan.Shard{Index: i, Count: count}) {
			byCount[count][i] = file
		}
	}
	bestCount := 0
	for _, count := range slices.Sorted(maps.Keys(byCount)) {
		if bestCount == 0 || len(byCount[count])*bestCount > len(byCount[bestCount])*count {
			bestCount = count
		}
	}
	if bestCount == 0 {
		return nil, missingShards(c, nil)
	}
	return openStates(c, byCount[bestCount], bestCount)
}

// openStates opens the given files, one for each of count shards. Shards without samples have no
// file.
func openStates(c *plan.Cell, files map[int]string, count int) (states []*stateFile, err error) {
	defer func() {
		if err != nil {
			for _, p := range states {
				p.Close()
			}
		}
	}()
	var missing []string
	for i := 1; i <= count; i++ {
		shard := plan.Shard{Index: i, Count: count}
		lo, hi := shard.Positions(c.Data.Layout) // in the random order of the samples
		if lo == hi {
			continue
		}
		f, err := openState(files[i])
		switch {
		case files[i] == "" || errors.Is(err, fs.ErrNotExist):
			missing = append(missing, fmt.Sprintf("%d/%d", i, count))
			continue
		case errors.Is(err, errDamaged):
			missing = append(missing, fmt.Sprintf("%d/%d (damaged)", i, count))
			continue
		case err != nil:
			return states, err
		}
		states = append(states, f)
		if !isComplete(c, f, shard) {
			missing = append(missing, fmt.Sprintf("%d/%d (unfinished)", i, count))
		}
	}
	if len(missing) > 0 {
		return states, missingShards(c, missing)
	}
	return states, nil
}

// holdsShard reports whether a state file holds a complete shard.
func holdsShard(c *plan.Cell, file string, shard plan.Shard) bool {
	f, err := openState(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return isComplete(c, f, shard) && f.isIntact()
}

// isComplete reports whether a state file holds every task (one measure at one layer, for example)
// of the cell, after the last sample of its shard.
func isComplete(c *plan.Cell, f *stateFile, shard plan.Shard) bool {
	_, hi := shard.Positions(c.Data.Layout)
	if f.Cell != c.Key || f.N != c.Data.Layout.N || f.Shard != shard {
		return false
	}
	for _, t := range c.Tasks {
		if e := f.entry(t.Name()); e == nil || !e.Scored && e.Seen < hi {
			return false
		}
	}
	return true
}

func missingShards(c *plan.Cell, shards []string) *MissingShards {
	return &MissingShards{Cell: c.String(), Model: c.Model.Entry.Name, Shards: shards}
}

// MissingShards is the error of a merge for a cell that lacks shards.
type MissingShards struct {
	Cell   string
	Model  string
	Shards []string // such as "3/4" or "4/4 (unfinished)"; empty if no shard exists
	Whole  bool     // the cell is of a procedure (it trains a probe, say), which one shard runs undivided
}

// Error implements error.
func (e *MissingShards) Error() string {
	if e.Whole {
		return fmt.Sprintf("%s has not been done, neither by the shard that it belongs to nor by a run without shards: run the study for it, then merge again", e.Cell)
	}
	return fmt.Sprintf("%s lacks %s: run the study for them, then merge again", e.Cell, e.shards())
}

func (e *MissingShards) shards() string {
	switch len(e.Shards) {
	case 0:
		return "every shard"
	case 1:
		return "the shard " + e.Shards[0]
	}
	return "the shards " + firstNames(e.Shards, 10)
}

// Incomplete is the error of a merge that lacks shards. The complete cells were merged and written.
type Incomplete struct {
	Cells   int              // number of cells of the study
	Missing []*MissingShards // one for each incomplete cell
}

// add adds err if it is a *MissingShards, and reports whether it is.
func (e *Incomplete) add(err error) bool {
	missing := (*MissingShards)(nil)
	ok := errors.As(err, &missing)
	if ok {
		e.Missing = append(e.Missing, missing)
	}
	return ok
}

// ByModel counts the incomplete cells of each model that lack the same shards.
func (e *Incomplete) ByModel() []scores.Missing {
	var out []scores.Missing
	for _, m := range e.Missing {
		i := slices.IndexFunc(out, func(s scores.Missing) bool { return s.Model == m.Model && slices.Equal(s.Shards, m.Shards) })
		if i < 0 {
			i = len(out)
			out = append(out, scores.Missing{Model: m.Model, Shards: m.Shards, Example: m.Cell})
		}
		out[i].Cells++
	}
	return out
}

// Error implements error.
func (e *Incomplete) Error() string {
	if len(e.Missing) == 1 {
		return e.Missing[0].Error()
	}
	var what []string
	for _, m := range e.ByModel() {
		what = append(what, fmt.Sprintf("%d of model %s lack %s", m.Cells, m.Model, (&MissingShards{Shards: m.Shards}).shards()))
	}
	return fmt.Sprintf("%d of %d cells are not complete: %s; run the study for them, then merge again", len(e.Missing), e.Cells, firstNames(what, 5))
}

// Unwrap returns a *MissingShards for each incomplete cell.
func (e *Incomplete) Unwrap() []error {
	out := make([]error, len(e.Missing))
	for i, m := range e.Missing {
		out[i] = m
	}
	return out
}
