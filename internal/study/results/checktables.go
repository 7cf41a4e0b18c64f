package results

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/scores"
)

// tables checks scores.csv against the records if every cell has one, and all tables against their
// checksums.
func (c *checker) tables() error {
	record, err := scores.ReadRecord(c.folder.Path("run.json"))
	rows, complete := c.rows()
	if errors.Is(err, fs.ErrNotExist) && complete {
		c.note("run.json", Lacking, "all cells are done, and there is no record of the run: run the study again, or merge the folder")
	}
	if err != nil || record.Finished == nil {
		return nil
	}
	c.missingCells(record)
	before := len(c.found)
	if complete {
		err = c.scoreTable(rows)
	}
	// If scores.csv differs from the records, its repair writes scores.parquet too.
	scoresFound := err != nil || len(c.found) > before
	for _, name := range slices.Sorted(maps.Keys(record.Files)) {
		if !scoresFound || !strings.HasPrefix(name, "scores.") {
			err = errors.Join(err, c.table(name, record, rows, complete))
		}
	}
	if err != nil || !c.fix || len(c.found) == before {
		return err
	}
	// A file that was moved aside keeps its checksum, so that another run writes it again.
	sums, err := c.folder.sumFiles()
	if err != nil {
		return err
	}
	for name, sum := range record.Files {
		if _, ok := sums[name]; !ok {
			sums[name] = sum
		}
	}
	record.Files = sums
	return scores.WriteRecord(c.folder.Path("run.json"), record)
}

func (c *checker) missingCells(record scores.Record) {
	n := 0
	for _, key := range record.Keys {
		if !c.isValid(key) && !slices.ContainsFunc(record.Failed, func(f scores.Failure) bool { return f.Key == key }) {
			n++
		}
	}
	if n > 0 {
		c.note("cells", Lacking, fmt.Sprintf("the run was finished, and %s of %d are missing: run the study again", plural.Of(n, "cell"), len(record.Keys)))
	}
}

// rows returns the rows of scores.csv, and whether every cell has a valid record.
func (c *checker) rows() ([]scores.Row, bool) {
	if c.plan == nil {
		return nil, false
	}
	var cells []scores.Cell
	for _, cell := range c.plan.Cells {
		record, ok := c.valid[cell.Key]
		if !ok {
			return nil, false // the next run computes the cell and writes the tables
		}
		cells = append(cells, record)
	}
	return scores.Table(c.plan.Study.Name, cells), true
}

func (c *checker) scoreTable(rows []scores.Row) error {
	var want bytes.Buffer
	if err := scores.WriteCSV(&want, rows); err != nil {
		return err
	}
	got, err := os.ReadFile(c.folder.Path("scores.csv"))
	if err == nil && (bytes.Equal(got, want.Bytes()) || sameBefore(got, rows)) {
		return nil
	}
	return c.report("scores.csv", Lacking, "it differs from the records of the cells", c.rewrite(rows))
}

// sameBefore reports whether a table holds rows as a version without p-values wrote them.
func sameBefore(table []byte, rows []scores.Row) bool {
	read, err := scores.ReadCSV(bytes.NewReader(table))
	if err != nil || len(read) != len(rows) || bytes.HasPrefix(table, []byte(strings.Join(scores.Columns, ","))) {
		return false
	}
	for i := range read {
		read[i].P, read[i].PAdjusted = rows[i].P, rows[i].PAdjusted
	}
	var a, b bytes.Buffer
	return scores.WriteCSV(&a, read) == nil && scores.WriteCSV(&b, rows) == nil && bytes.Equal(a.Bytes(), b.Bytes())
}

func (c *checker) table(name string, record scores.Record, rows []scores.Row, complete bool) error {
	err := record.Files[name].Verify(c.folder.Path(name))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		c.note(name, Lacking, "it was removed since the run finished; another run writes it again")
		return nil
	}
	repair := c.moveAside
	if complete && strings.HasPrefix(name, "scores.") {
		repair = c.rewrite(rows)
	}
	return c.report(name, Damaged, trimPath(err, c.folder.Path(name)), repair)
}

// rewrite returns a repair that writes the tables of scores again.
func (c *checker) rewrite(rows []scores.Row) func(string) (string, error) {
	return func(string) (string, error) { return "written again", c.folder.writeTables(rows) }
}
