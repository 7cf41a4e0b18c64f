// Package parquetfile writes and reads the tables of a run as Parquet: scores, values of single
// samples, units and tuning curves. Their rows and columns are those of package scores.
package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/intern"
	"github.com/noether-ml/noether/internal/parquetbounds"
	"github.com/noether-ml/noether/scores"
)

// parquetRow is a Row, one score, in a Parquet file: the columns of scores.csv, with nulls of
// Parquet for numbers that do not apply. Row describes the fields.
type parquetRow struct {
	Study      string   `parquet:"study,dict"`
	Model      string   `parquet:"model,dict"`
	Layer      string   `parquet:"layer,dict"`
	Depth      *int64   `parquet:"depth"`
	OtherModel string   `parquet:"other_model,dict"`
	OtherLayer string   `parquet:"other_layer,dict"`
	Data       string   `parquet:"data,dict"`
	Transform  string   `parquet:"transform,dict"`
	Parameter  string   `parquet:"parameter,dict"`
	Trial      *int64   `parquet:"trial"` // which repetition of the random draws
	Measure    string   `parquet:"measure,dict"`
	Variant    string   `parquet:"variant,dict"` // version of the statistic
	Factor     string   `parquet:"factor,dict"`  // known property of samples, or class
	Statistic  string   `parquet:"statistic,dict"`
	Value      *float64 `parquet:"value"`
	Low        *float64 `parquet:"low"` // ends of the 95 % interval
	High       *float64 `parquet:"high"`
	Null       *float64 `parquet:"null"` // value of the statistic that chance alone gives
	N          int64    `parquet:"n"`    // number of observations
	Warning    string   `parquet:"warning,dict"`
	P          *float64 `parquet:"p"` // of the hypothesis that the score is its null
	PAdjusted  *float64 `parquet:"p_adjusted"`
}

// Write writes rows as Parquet (zstd) with the columns of scores.csv. NaN, and a depth or
// trial that does not apply, are written as null.
func Write(w io.Writer, rows []scores.Row) error {
	p := newRowWriter(w, func(r scores.Row) parquetRow {
		return parquetRow{
			r.Study, r.Model, r.Layer, nullInt(r.Depth), r.OtherModel, r.OtherLayer, r.Data, r.Transform, r.Parameter,
			nullInt(r.Trial), r.Measure, r.Variant, r.Factor, r.Statistic,
			nullFloat(r.Value), nullFloat(r.Low), nullFloat(r.High), nullFloat(r.Null), int64(r.N), r.Warning, nullP(r.P), nullP(r.PAdjusted),
		}
	})
	if err := p.Write(rows...); err != nil {
		return err
	}
	return p.Close()
}

// Read reads a file of the given size in bytes that Write wrote.
func Read(r io.ReaderAt, size int64) (rows []scores.Row, err error) {
	texts := intern.NewColumns()
	text := func(r parquet.Row, column int) string { return texts.Text(column, r[column].ByteArray()) }
	before := scores.Columns[:len(scores.Columns)-2] // an earlier version wrote no p-values
	err = readParquetRows[parquetRow](r, size, before, func(r parquet.Row) error {
		rows = append(rows, scores.Row{ // values in the order of the fields of parquetRow
			Study: text(r, 0), Model: text(r, 1), Layer: text(r, 2), Depth: intOf(r[3], -1), OtherModel: text(r, 4), OtherLayer: text(r, 5),
			Data: text(r, 6), Transform: text(r, 7), Parameter: text(r, 8), Trial: intOf(r[9], -1),
			Measure: text(r, 10), Variant: text(r, 11), Factor: text(r, 12), Statistic: text(r, 13),
			Value: floatOf(r[14]), Low: floatOf(r[15]), High: floatOf(r[16]), Null: floatOf(r[17]), N: intOf(r[18], 0), Warning: text(r, 19), P: pOf(r[20]), PAdjusted: pOf(r[21]),
		})
		return nil
	})
	return rows, err
}

// ReadFile reads a Parquet file by read and calls each with every row in order. read is ReadUnits,
// ReadCurves or ReadSamples: of values by unit, of tuning curves, or of values by sample.
func ReadFile[T any](path string, read func(io.ReaderAt, int64, func(T)) error, each func(T)) error {
	f, err := filesys.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = read(f, info.Size(), each)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// readParquet calls each with the rows of a Parquet file in order. The file must have the given
// columns.
func readParquet[T any](r io.ReaderAt, size int64, columns []string, each func(T)) error {
	schema := parquet.SchemaOf(new(T))
	return readParquetRows[T](r, size, columns, func(row parquet.Row) error {
		var one T
		if err := schema.Reconstruct(&one, row); err != nil {
			return err
		}
		each(one)
		return nil
	})
}

// readParquetRows calls each with the rows of a Parquet file in order, as values in the order of
// the fields of T. The file must have the given columns.
func readParquetRows[T any](r io.ReaderAt, size int64, columns []string, each func(parquet.Row) error) (err error) {
	defer func() {
		// The library panics on some damaged files; report these as errors like any other bad
		// input.
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged Parquet file: %v", p)
		}
	}()
	file, err := openParquet(r, size)
	if err != nil {
		return err
	}
	schema := parquet.SchemaOf(new(T))
	if err := sameColumns(file.Schema(), schema, columns); err != nil {
		return err
	}
	reader := parquet.NewGenericReader[T](file)
	defer reader.Close()
	checks, rows := columnChecks(schema.Fields()), make([]parquet.Row, 256)
	for {
		n, err := reader.ReadRows(rows)
		for _, row := range rows[:n] {
			err := checkRow(row, checks)
			if err == nil {
				err = each(row)
			}
			if err != nil {
				return fmt.Errorf("damaged Parquet file: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && n == 0 {
			err = io.ErrNoProgress
		}
		if err != nil {
			return fmt.Errorf("damaged Parquet file: %w", err)
		}
	}
}

// checkRow checks that a row has exactly one value for each column, of the column's type. If a page
// header states a wrong number of values, columns become misaligned, and the library would read a
// number as a pointer to a string.
func checkRow(row parquet.Row, columns []columnCheck) error {
	if len(row) != len(columns) {
		return fmt.Errorf("its %d columns are misaligned: a row has %d values", len(columns), len(row))
	}
	for i := range row {
		v, c := &row[i], &columns[i]
		fits := v.Kind() == c.kind && (c.kind != parquet.ByteArray || len(v.ByteArray()) <= maxText)
		if v.IsNull() {
			fits = c.optional
		}
		if v.Column() != i || !fits {
			return fmt.Errorf("column %q is misaligned", c.name)
		}
	}
	return nil
}

// maxText is the largest length of a text in bytes. A dictionary repeats a text in every row for
// some bits.
const maxText = 1 << 20

// A columnCheck says which values a column may have.
type columnCheck struct {
	name     string
	kind     parquet.Kind
	optional bool
}

func columnChecks(fields []parquet.Field) []columnCheck {
	out := make([]columnCheck, len(fields))
	for i, f := range fields {
		out[i] = columnCheck{f.Name(), f.Type().Kind(), f.Optional()}
	}
	return out
}

func intOf(v parquet.Value, missing int) int {
	if v.IsNull() {
		return missing
	}
	return int(v.Int64())
}

func floatOf(v parquet.Value) float64 {
	if v.IsNull() {
		return math.NaN()
	}
	return v.Double()
}

// maxPage is the largest decompressed size in bytes of a page. The writer makes pages of 256 KiB,
// and dictionaries of the texts of a row group.
const maxPage = 64 << 20

func openParquet(r io.ReaderAt, size int64) (*parquet.File, error) {
	file, err := parquetbounds.Open(r, size, parquet.SkipPageIndex(true))
	if err == nil {
		err = parquetbounds.CheckRows(file, size)
	}
	if err == nil {
		err = parquetbounds.Check(r, file, nil, maxPage)
	}
	if err != nil {
		return nil, err
	}
	for _, group := range file.Metadata().RowGroups {
		for _, chunk := range group.Columns {
			// The LZ4 decoder allocates without limit on data that is not LZ4.
			if got := chunk.MetaData.Codec; got != compression.CompressionCodec() {
				return nil, fmt.Errorf("the Parquet file is compressed by %v, not %v", got, compression)
			}
		}
	}
	return file, nil
}

// sameColumns checks that the wanted columns of a file have the types that they were written with.
// The library does not check this and would read values of one type as another.
func sameColumns(file, want *parquet.Schema, columns []string) error {
	for _, c := range columns {
		actual, ok := file.Lookup(c)
		if !ok {
			return fmt.Errorf("the Parquet file has no column %q", c)
		}
		if wanted, _ := want.Lookup(c); !parquet.EqualNodes(actual.Node, wanted.Node) {
			return fmt.Errorf("column %q of the Parquet file is %v, not %v", c, actual.Node, wanted.Node)
		}
	}
	return nil
}

// rowGroupSize is the number of rows that are buffered in memory before they are written.
const rowGroupSize = 1 << 18

const rowBatch = 64

// compression is the codec of all Parquet files.
var compression = &zstd.Codec{}

// A RowWriter writes rows as Parquet in batches, because a study may have many millions.
type RowWriter[T any] struct {
	write func(T) error
	close func() error
}

// newRowWriter returns a RowWriter of rows that pack turns into those of the file.
func newRowWriter[T, P any](w io.Writer, pack func(T) P) *RowWriter[T] {
	p := parquet.NewGenericWriter[P](w, parquet.Compression(compression))
	batch, buffered := make([]P, 0, rowBatch), 0 // rows that p lacks, and rows in its current group
	flush := func() error {
		_, err := p.Write(batch)
		clear(batch) // its pointers
		batch = batch[:0]
		return err
	}
	return &RowWriter[T]{
		write: func(row T) error {
			batch = append(batch, pack(row))
			buffered++
			if buffered < rowGroupSize && len(batch) < rowBatch {
				return nil
			}
			err := flush()
			if err == nil && buffered == rowGroupSize {
				buffered, err = 0, p.Flush()
			}
			return err
		},
		close: func() error { return errors.Join(flush(), p.Close()) },
	}
}

// Write appends rows.
func (w *RowWriter[T]) Write(rows ...T) error {
	for _, r := range rows {
		if err := w.write(r); err != nil {
			return err
		}
	}
	return nil
}

// Close writes buffered rows and the footer. It does not close the underlying writer.
func (w *RowWriter[T]) Close() error { return w.close() }

func nullInt(v int) *int64 {
	if v < 0 {
		return nil
	}
	return new(int64(v))
}

func nullFloat(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// nullP returns nil for 0, which is no p-value.
func nullP(p float64) *float64 {
	if p == 0 {
		return nil
	}
	return &p
}

func pOf(v parquet.Value) float64 {
	if v.IsNull() {
		return 0
	}
	return v.Double()
}

func nullText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// intOrNone returns -1 for null: NoDepth, scores.MeanOverTrials, or an unknown label.
func intOrNone(v *int64) int {
	if v == nil {
		return -1
	}
	return int(*v)
}

func floatOr(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}
