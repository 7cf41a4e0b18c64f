package rundir

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// unitFiles collects the scores and tuning curves of units (values of a layer, each a channel at a
// position) of a procedure (a measure that works in steps) until its cell is written. A tuning
// curve is the response of a unit to an input and its transformed versions. A cell is a measure for
// one model, data set, transformation and trial. unitFiles holds the rows as Parquet, which takes
// about a tenth of the memory of the rows.
type unitFiles struct {
	writer        *Writer
	cell          *plan.Cell
	units, curves bytes.Buffer
	unitWriter    *scores.RowWriter[scores.UnitRow]
	curveWriter   *scores.RowWriter[scores.CurveRow]
}

// NewUnitFiles returns the collector of the unit scores and curves of a procedure's cell.
func (r *Writer) NewUnitFiles(c *plan.Cell) *unitFiles { return &unitFiles{writer: r, cell: c} }

// AddUnits adds scores of units. A procedure calls it as Units of its procedure.Job.
func (u *unitFiles) AddUnits(rows []measure.UnitScore) error {
	if u.unitWriter == nil {
		u.unitWriter = scores.NewUnitWriter(&u.units)
	}
	for _, row := range rows {
		layer, err := u.cell.Procedure.Layer(row.Layer, -1) // -1: no layer of a second model
		if err == nil {
			err = u.unitWriter.Write(scores.UnitRow{Study: u.writer.Plan.Study.Name, Model: u.cell.Model.Entry.Name, Layer: layer.Name, Depth: layer.Depth,
				Data: u.cell.Data.Entry.Name, Transform: u.cell.View.Name, Trial: u.cell.View.Trial, Measure: u.cell.Method.Name(), UnitScore: row})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AddCurves adds tuning curves of units. A procedure calls it as Curves of its procedure.Job.
func (u *unitFiles) AddCurves(rows []measure.UnitResponse) error {
	if u.curveWriter == nil {
		u.curveWriter = scores.NewCurveWriter(&u.curves)
	}
	for _, row := range rows {
		layer, err := u.cell.Procedure.Layer(row.Layer, -1) // -1: no layer of a second model
		if err == nil {
			err = u.curveWriter.Write(scores.CurveRow{Study: u.writer.Plan.Study.Name, Model: u.cell.Model.Entry.Name, Layer: layer.Name, Depth: layer.Depth,
				Data: u.cell.Data.Entry.Name, Transform: u.cell.View.Name, Trial: u.cell.View.Trial, Measure: u.cell.Method.Name(), UnitResponse: row})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Write writes the collected files into the run folder. Call it before the cell's record is
// written, so that a record never lacks its files.
func (u *unitFiles) Write() error {
	write := func(name string, closing func() error, content *bytes.Buffer) error {
		if err := closing(); err != nil {
			return err
		}
		if err := atomicfile.Write(u.writer.Folder.Path("cells", u.cell.Key+name), content.Bytes()); err != nil {
			return SaveError(err)
		}
		return nil
	}
	if u.unitWriter != nil {
		if err := write(unitsSuffix, u.unitWriter.Close, &u.units); err != nil {
			return err
		}
	}
	if u.curveWriter != nil {
		return write(curvesSuffix, u.curveWriter.Close, &u.curves)
	}
	return nil
}

const (
	unitsSuffix  = ".units.parquet"
	curvesSuffix = ".curves.parquet"
)

// copyFiles copies the files of the cell with a key (a hash of all that its scores depend on) and
// the given suffixes from another run folder, in order. Missing files are skipped.
func (f Folder) copyFiles(from Folder, key string, suffixes ...string) error {
	for _, suffix := range suffixes {
		raw, err := os.ReadFile(from.Path("cells", key+suffix))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := atomicfile.Write(f.Path("cells", key+suffix), raw); err != nil {
			return SaveError(err)
		}
	}
	return nil
}

// writeUnits writes units.parquet and curves.parquet, each if any cell has a file of such rows.
// listed has the names of the files in the folder of the cells.
func (r *Writer) writeUnits(listed map[string]bool) error {
	err := joinRows(r, "units.parquet", r.cellsWith(unitsSuffix, listed), unitsSuffix, scores.NewUnitWriter, scores.ReadUnits)
	if err != nil {
		return err
	}
	return joinRows(r, "curves.parquet", r.cellsWith(curvesSuffix, listed), curvesSuffix, scores.NewCurveWriter, scores.ReadCurves)
}

// joinRows writes the rows of some cells to one file of the run folder. It reads them from the
// cells' files with the given suffix. Without cells it writes no file.
func joinRows[T any](r *Writer, name string, cells []*plan.Cell, suffix string, open func(io.Writer) *scores.RowWriter[T], read func(io.ReaderAt, int64, func(T)) error) error {
	if len(cells) == 0 {
		return nil
	}
	return r.Folder.write(name, func(w io.Writer) error {
		out := open(w)
		for _, c := range cells {
			var failed error
			err := scores.ReadFile(r.Folder.Path("cells", c.Key+suffix), read, func(row T) {
				if failed == nil {
					failed = out.Write(row)
				}
			})
			if err := errors.Join(err, failed); err != nil {
				return err
			}
		}
		return out.Close()
	})
}

// optional returns err unless it says that a file does not exist.
func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
