package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go"

	"github.com/noether-ml/noether/internal/parquetbounds"
)

// readParquet lists the columns of a Parquet file that hold numbers, or lists of numbers. A column
// is read into memory when it is opened.
func (a *archive) readParquet() error {
	var f *parquet.File
	err := guardParquet(func() (err error) {
		f, err = parquetbounds.Open(a.data, a.data.size)
		return err
	})
	if err != nil {
		return err
	}
	a.members = map[string]arrayOpener{}
	for _, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		switch leaf.Node.Type().Kind() {
		case parquet.Float, parquet.Double, parquet.Int32, parquet.Int64, parquet.Boolean:
			a.add(path[0], func(ctx context.Context) (arr npyArray, err error) {
				err = guardParquet(func() error {
					if err := parquetbounds.Check(a.data, f, []int{leaf.ColumnIndex}, maxFile); err != nil {
						return err
					}
					arr, err = parquetArray(ctx, f, leaf)
					return err
				})
				return arr, err
			})
		}
	}
	return nil
}

// parquetArray reads a column as an array: of one axis for numbers, of two for lists.
func parquetArray(ctx context.Context, f *parquet.File, leaf parquet.LeafColumn) (npyArray, error) {
	a := npyArray{kind: 'f', bytes: 8, order: binary.LittleEndian}
	if leaf.Node.Type().Kind() == parquet.Float {
		a.bytes = 4
	}
	limit := decompressedLimit()
	rows, width, inRow := 0, 0, 0
	endRow := func() error {
		if rows == 1 {
			width = inRow
		} else if inRow != width {
			return fmt.Errorf("row %d has %d values, and the first has %d", rows-1, inRow, width)
		}
		return nil
	}
	var raw memoryBlocks
	size := int64(0)
	for _, g := range f.RowGroups() {
		err := eachValue(ctx, g.ColumnChunks()[leaf.ColumnIndex], func(v parquet.Value) error {
			if v.RepetitionLevel() == 0 {
				if rows > 0 {
					if err := endRow(); err != nil {
						return err
					}
				}
				rows, inRow = rows+1, 0
			}
			x, ok := number(v)
			if !ok {
				return fmt.Errorf("row %d has a missing value", rows-1)
			}
			inRow++
			if size%memoryBlock == 0 {
				raw = append(raw, nil)
			}
			last := &raw[len(raw)-1]
			if a.bytes == 4 {
				*last = binary.LittleEndian.AppendUint32(*last, math.Float32bits(float32(x)))
			} else {
				*last = binary.LittleEndian.AppendUint64(*last, math.Float64bits(x))
			}
			if size += int64(a.bytes); size > limit {
				return tooLarge(limit)
			}
			return nil
		})
		if err != nil {
			return a, err
		}
	}
	if err := endRow(); err != nil {
		return a, err
	}
	a.shape = []int{rows, width}
	if leaf.MaxRepetitionLevel == 0 {
		a.shape = a.shape[:1]
	}
	a.fileData = fileData{ReaderAt: raw, size: size}
	return a, a.checkSize()
}

// number returns the number that a value of a Parquet file holds, and false for others.
func number(v parquet.Value) (float64, bool) {
	switch {
	case v.IsNull():
		return 0, false
	case v.Kind() == parquet.Float:
		return float64(v.Float()), true
	case v.Kind() == parquet.Double:
		return v.Double(), true
	case v.Kind() == parquet.Int32:
		return float64(v.Int32()), true
	case v.Kind() == parquet.Int64:
		return float64(v.Int64()), true
	case v.Kind() == parquet.Boolean:
		if v.Boolean() {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}
