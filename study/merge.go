package study

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noether-ml/noether/measure"
)

// Merge completes a run from the states that its shards have left in the given folders, and writes what an undivided
// run would have written into the first of them. It opens the models and the data to see that the states are of this
// study, and runs nothing.
func Merge(ctx context.Context, s *Study, dirs []string, o Options) (*Result, error) {
	folder, err := createFolder(dirs[0])
	if err != nil {
		return nil, err
	}
	plan, err := NewPlan(ctx, s, o)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	r := &runner{plan: plan, folder: folder, o: o, accs: map[*task]measure.Accumulator{}, started: time.Now().UTC()}
	r.recallUnreadable()
	for _, c := range plan.Cells {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if folder.hasCell(c) {
			c.done = true
			continue
		}
		if err := r.mergeCell(c, dirs); err != nil {
			return nil, err
		}
	}
	return r.finish(ctx)
}

// mergeCell merges the parts of a cell in the order of the samples and writes its record.
func (r *runner) mergeCell(c *Cell, dirs []string) error {
	parts, err := c.findParts(dirs)
	if err != nil {
		return err
	}
	defer func() {
		for _, p := range parts {
			p.close()
		}
	}()
	for _, t := range c.tasks {
		if err := t.mergeParts(parts); err != nil {
			return err
		}
	}
	for _, p := range parts {
		c.Data.unreadable.add(p.Unreadable...)
	}
	if err := c.Data.unreadable.tooMany(errors.New("its shard could not read it")); err != nil {
		return fmt.Errorf("data %s: %w", c.Data.spec.Name, err)
	}
	return r.completeCell(c)
}

func (t *task) mergeParts(parts []*stateFile) error {
	var whole measure.Accumulator
	for _, p := range parts {
		acc, err := t.cell.Measure.New(t.site)
		if err != nil {
			return t.explain(err)
		}
		if err := t.restore(acc, p); err != nil {
			return err
		}
		if whole == nil {
			whole = acc
		} else if err := whole.Merge(acc); err != nil {
			return t.explain(err)
		}
	}
	var err error
	t.scored, err = t.compute(whole)
	return err
}

var partName = regexp.MustCompile(`\.(\d+)of(\d+)\.bin$`)

// findParts opens the states of all shards of a cell, in order. Shards that are missing or unfinished are named.
func (c *Cell) findParts(dirs []string) ([]*stateFile, error) {
	byCount := map[int]map[int]string{} // by the number of shards, by the shard
	for _, dir := range dirs {
		files, err := Folder{dir}.shards(c)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			m := partName.FindStringSubmatch(filepath.Base(file))
			if m == nil {
				continue
			}
			i, _ := strconv.Atoi(m[1])
			of, _ := strconv.Atoi(m[2])
			if byCount[of] == nil {
				byCount[of] = map[int]string{}
			}
			if other := byCount[of][i]; other == "" || !c.holds(other, Part{i, of}) {
				byCount[of][i] = file
			}
		}
	}
	best := 0
	for of, files := range byCount {
		if best == 0 || len(files)*best > len(byCount[best])*of || len(files)*best == len(byCount[best])*of && of < best {
			best = of
		}
	}
	if best == 0 {
		return nil, fmt.Errorf("no shard of %s is in %s: run the study with --shard 1/2 and --shard 2/2, say, first", c, dirs[0])
	}
	return c.openParts(byCount[best], best)
}

func (c *Cell) openParts(files map[int]string, of int) (parts []*stateFile, err error) {
	defer func() {
		if err != nil {
			for _, p := range parts {
				p.close()
			}
		}
	}()
	var missing []string
	for i := 1; i <= of; i++ {
		part := Part{i, of}
		if files[i] == "" {
			if lo, hi := part.places(c.Data.layout); lo < hi {
				missing = append(missing, fmt.Sprintf("%d/%d", i, of))
			}
			continue
		}
		f, err := openState(files[i])
		if err != nil {
			return parts, err
		}
		parts = append(parts, f)
		if !c.complete(f, part) {
			missing = append(missing, fmt.Sprintf("%d/%d (unfinished)", i, of))
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return parts, &MissingShards{Cell: c.String(), Shards: missing}
	}
	if len(parts) == 0 {
		return parts, errors.New("the data have no samples")
	}
	return parts, nil
}

// holds reports whether a file has the whole of a part.
func (c *Cell) holds(file string, part Part) bool {
	f, err := openState(file)
	if err != nil {
		return false
	}
	defer f.close()
	return c.complete(f, part)
}

// complete reports whether a part holds every layer of the cell up to its end.
func (c *Cell) complete(f *stateFile, part Part) bool {
	_, hi := part.places(c.Data.layout)
	if f.Cell != c.Key || f.N != c.Data.layout.N || f.Part != part {
		return false
	}
	for _, t := range c.tasks {
		if e := f.entry(t.site.Layer.Name); e == nil || e.Scored || e.Seen < hi {
			return false
		}
	}
	return true
}

// MissingShards says which parts a merge lacks.
type MissingShards struct {
	Cell   string
	Shards []string
}

func (e *MissingShards) Error() string {
	return fmt.Sprintf("%s lacks the shards %s: run them, then merge again", e.Cell, strings.Join(e.Shards, ", "))
}

func (c *Cell) String() string {
	name := fmt.Sprintf("%s of model %s on %s", c.Measure.Name(), c.Model.spec.Name, c.Data.spec.Name)
	if c.View.Transform != "" {
		name += " under " + c.View.Transform
	}
	if c.View.Parameter != "" {
		name += " " + c.View.Parameter
	}
	return name
}
