package results

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// shardStates are the states of the tasks of a cell in one shard, by task.
type shardStates struct {
	shard  plan.Shard
	states map[string]foundState
}

// A foundState is the state of a task in one of the folders that a merge reads.
type foundState struct {
	folder  Folder
	key     string
	version uint64
}

// findStates returns the states of all cells in some folders, by cell.
func findStates(folders []Folder) map[string][]*shardStates {
	out := map[string][]*shardStates{}
	for _, f := range folders {
		for _, key := range f.states.Keys() {
			cell, name, task := splitKey(key)
			shard, err := plan.ParseShard(strings.Replace(name, "of", "/", 1)) // name is 3of16, for example
			if err != nil {
				continue
			}
			version, _ := f.states.Version(key)
			i := slices.IndexFunc(out[cell], func(s *shardStates) bool { return s.shard == shard })
			if i < 0 {
				i = len(out[cell])
				out[cell] = append(out[cell], &shardStates{shard, map[string]foundState{}})
			}
			if old, ok := out[cell][i].states[task]; !ok || old.version < version {
				out[cell][i].states[task] = foundState{f, key, version}
			}
		}
	}
	return out
}

// completeShards returns the states of all shards of a cell, in order. Of several divisions it
// takes the one of which the largest fraction exists. It returns a *MissingShards if shards are
// missing or unfinished.
func (m *merger) completeShards(c *plan.Cell) ([]*shardStates, error) {
	byCount := map[int]map[int]*shardStates{}
	for _, s := range m.found[c.Key] {
		if byCount[s.shard.Count] == nil {
			byCount[s.shard.Count] = map[int]*shardStates{}
		}
		byCount[s.shard.Count][s.shard.Index] = s
	}
	count := 0
	for _, n := range slices.Sorted(maps.Keys(byCount)) {
		if count == 0 || len(byCount[n])*count > len(byCount[count])*n {
			count = n
		}
	}
	if count == 0 {
		return nil, missingShards(c, nil)
	}
	var out []*shardStates
	var missing []string
	for i := 1; i <= count; i++ {
		shard := plan.Shard{Index: i, Count: count}
		lo, hi := shard.Positions(c.Data.Layout) // in the random order of the samples
		if lo == hi {
			continue
		}
		switch s := byCount[count][i]; {
		case m.isDamaged(c, shard):
			missing = append(missing, fmt.Sprintf("%d/%d (damaged)", i, count))
		case s == nil:
			missing = append(missing, fmt.Sprintf("%d/%d", i, count))
		case !s.isComplete(c, hi):
			missing = append(missing, fmt.Sprintf("%d/%d (unfinished)", i, count))
		default:
			out = append(out, s)
		}
	}
	if len(missing) > 0 {
		return nil, missingShards(c, missing)
	}
	return out, nil
}

// isComplete reports whether the states hold every task of the cell, fed up to position hi or
// scored.
func (s *shardStates) isComplete(c *plan.Cell, hi int) bool {
	return !slices.ContainsFunc(c.Tasks, func(t *plan.Task) bool {
		state, ok := s.states[t.Name()]
		seen, scored := progressOf(state.version)
		return !ok || !scored && seen < hi
	})
}

// isDamaged reports whether a state of a cell in a shard is damaged, and there is no other one.
func (m *merger) isDamaged(c *plan.Cell, shard plan.Shard) bool {
	return slices.ContainsFunc(c.Tasks, func(t *plan.Task) bool {
		key := taskKey(c, shard, t.Name())
		damaged := false
		for _, f := range m.folders() {
			if _, ok := f.states.Version(key); ok {
				return false
			}
			damaged = damaged || f.states.Damaged(key)
		}
		return damaged
	})
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
