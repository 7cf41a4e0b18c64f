package rundir

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// tables checks the tables of a finished run: against the cells where all are at hand, else against
// their checksums.
func (c *checker) tables() error {
	record, err := scores.ReadRecord(c.folder.Path("run.json"))
	if err != nil || record.Finished == nil {
		return nil
	}
	before := len(c.found)
	rows, complete := c.rows()
	if complete {
		err = c.scoreTable(rows)
	}
	for _, name := range tables {
		if err == nil && len(c.found) == before || !strings.HasPrefix(name, "scores.") {
			err = errors.Join(err, c.table(name, record, rows, complete))
		}
	}
	if err != nil || !c.fix || len(c.found) == before {
		return err
	}
	if record.Files, err = c.folder.sumTables(); err != nil {
		return err
	}
	return scores.WriteRecord(c.folder.Path("run.json"), record)
}

// rows returns the rows that the cells give, and whether all cells of the study are at hand.
func (c *checker) rows() ([]scores.Row, bool) {
	if c.plan == nil {
		return nil, false
	}
	var cells []scores.Cell
	for _, cell := range c.plan.Cells {
		record, ok := c.good[cell.Key]
		if !ok {
			return nil, false // the next run computes the cell and writes the tables
		}
		cells = append(cells, record)
	}
	return scores.Table(c.plan.Study.Name, cells), true
}

// scoreTable compares scores.csv with the rows of all cells.
func (c *checker) scoreTable(rows []scores.Row) error {
	var want bytes.Buffer
	if err := scores.WriteCSV(&want, rows); err != nil {
		return err
	}
	is, err := os.ReadFile(c.folder.Path("scores.csv"))
	if err == nil && bytes.Equal(is, want.Bytes()) {
		return nil
	}
	return c.report("scores.csv", Lacking, "it does not say what the cells say", c.rewrite(rows))
}

// table verifies a table against the checksum in the record.
func (c *checker) table(name string, record scores.Record, rows []scores.Row, complete bool) error {
	sum, recorded := record.Files[name]
	if !recorded {
		return nil
	}
	err := sum.Verify(c.folder.Path(name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	mend := c.moveAside
	if complete && strings.HasPrefix(name, "scores.") {
		mend = c.rewrite(rows)
	}
	return c.report(name, Damaged, trimPath(err, c.folder.Path(name)), mend)
}

func (c *checker) rewrite(rows []scores.Row) func(string) (string, error) {
	return func(string) (string, error) { return "written again", c.folder.writeTables(rows) }
}
