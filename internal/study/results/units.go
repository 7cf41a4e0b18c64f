package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// unitFiles collects the scores and tuning curves of units of a procedure until its cell is
// written. It holds the rows as Parquet, which takes about a tenth of the memory of the rows.
type unitFiles struct {
	writer        *Writer
	cell          *plan.Cell
	units, curves bytes.Buffer
	unitWriter    *parquetfile.RowWriter[scores.UnitRow]
	curveWriter   *parquetfile.RowWriter[scores.CurveRow]
}

// NewUnitFiles returns the collector of the unit scores and curves of a procedure's cell.
func (r *Writer) NewUnitFiles(c *plan.Cell) *unitFiles { return &unitFiles{writer: r, cell: c} }

// AddUnits adds scores of units. A procedure calls it as Units of its procedure.Job.
func (u *unitFiles) AddUnits(rows []measure.UnitScore) error {
	if u.unitWriter == nil {
		u.unitWriter = parquetfile.NewUnitWriter(&u.units)
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
		u.curveWriter = parquetfile.NewCurveWriter(&u.curves)
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

// Close hands the collected tables over to the cell's record. Call it before the record is written.
func (u *unitFiles) Close() error {
	var parts []store.Part
	if u.unitWriter != nil {
		if err := u.unitWriter.Close(); err != nil {
			return err
		}
		parts = append(parts, store.Part{Name: unitsPart, Data: u.units.Bytes()})
	}
	if u.curveWriter != nil {
		if err := u.curveWriter.Close(); err != nil {
			return err
		}
		parts = append(parts, store.Part{Name: curvesPart, Data: u.curves.Bytes()})
	}
	u.writer.units[u.cell] = parts
	return nil
}

// writeUnits writes units.parquet and curves.parquet, each if any cell has such rows. cells has the
// cells with a part, by its name.
func (r *Writer) writeUnits(cells map[string][]*plan.Cell) error {
	err := joinRows(r, "units.parquet", cells[unitsPart], unitsPart, parquetfile.NewUnitWriter, parquetfile.ReadUnits)
	if err != nil {
		return err
	}
	return joinRows(r, "curves.parquet", cells[curvesPart], curvesPart, parquetfile.NewCurveWriter, parquetfile.ReadCurves)
}

// joinRows writes the rows in a part of some cells to one file of the run folder. Without cells it
// writes no file.
func joinRows[T any](r *Writer, name string, cells []*plan.Cell, part string, open func(io.Writer) *parquetfile.RowWriter[T], read func(io.ReaderAt, int64, func(T)) error) error {
	if len(cells) == 0 {
		return nil
	}
	return r.Folder.write(name, func(w io.Writer) error {
		out := open(w)
		for _, c := range cells {
			raw, err := r.Folder.cellPart(c.Key, part)
			if err != nil {
				return err
			}
			var failed error
			err = read(bytes.NewReader(raw), int64(len(raw)), func(row T) {
				if failed == nil {
					failed = out.Write(row)
				}
			})
			if err := errors.Join(err, failed); err != nil {
				return fmt.Errorf("%s: record %s: %w", r.Folder.Path("cells"), c.Key, err)
			}
		}
		return out.Close()
	})
}

// cellPart returns a part of the record of a cell, or nil if it has none.
func (f Folder) cellPart(key, part string) ([]byte, error) {
	it, err := f.cells.Get(key)
	if err != nil {
		return nil, err
	}
	return it.Bytes(part)
}

// optional returns err unless it says that a file does not exist.
func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
