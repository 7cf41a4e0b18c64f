package extract

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/noether-ml/noether/tensor"
)

// npyHeader is the number of bytes before the values of an npy file. It has room for any shape.
const npyHeader = 512

// npyStart returns the first npyHeader bytes of an npy file (version 1.0) of float32.
func npyStart(shape []int) []byte {
	dims := ""
	for _, d := range shape {
		dims += fmt.Sprintf("%d, ", d)
	}
	text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", strings.TrimSuffix(dims, " "))
	start := append([]byte("\x93NUMPY\x01\x00"), byte((npyHeader-10)&0xff), byte((npyHeader-10)>>8))
	return append(append(start, text...), strings.Repeat(" ", npyHeader-11-len(text))+"\n"...)
}

// safetensorsHeader returns the bytes before the values of a safetensors file with an array for
// each layer, and the offsets of the arrays after it.
func safetensorsHeader(layers []tensor.Layer, samples int) (header []byte, offsets []int64, err error) {
	type entry struct {
		Type    string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	entries := map[string]entry{}
	at := int64(0)
	for _, l := range layers {
		size := 4 * int64(samples) * int64(tensor.Size(l.Shape))
		entries[l.Name] = entry{"F32", append([]int{samples}, l.Shape...), [2]int64{at, at + size}}
		offsets = append(offsets, at)
		at += size
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, nil, err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ') // aligns the values
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), offsets, nil
}

// finish completes the files of a view and closes them.
func (w *Writer) finish(v *viewFiles) (err error) {
	switch {
	case w.options.Format == NPY:
		for k, a := range v.arrays {
			_, failed := a.file.WriteAt(npyStart(append([]int{w.rows}, w.layers[k].Shape...)), 0)
			err = errors.Join(err, failed)
		}
	case w.options.Format == Zarr:
		for k, a := range v.arrays {
			z := a.file.(*zarrArray)
			err = errors.Join(err, z.finish(w.rows, w.layers[k].Axes), writeGroups(filepath.Clean(w.dir), z.dir))
		}
	case w.options.Format == Parquet:
		err = w.convert(v)
	case w.rows < w.samples:
		err = w.compact(v)
	}
	return errors.Join(err, v.close())
}

// rows returns the values of the announced rows of an array.
func (w *Writer) section(a *array) *io.SectionReader {
	return io.NewSectionReader(a.file.(*os.File), a.at, 4*int64(w.rows)*int64(a.rowSize))
}

// compact writes a safetensors file without the rows of samples that were not read.
func (w *Writer) compact(v *viewFiles) error {
	return w.rewrite(v, Safetensors, func(to *bufio.Writer) error {
		header, _, err := safetensorsHeader(w.layers, w.rows)
		if err == nil {
			_, err = to.Write(header)
		}
		for k := range v.arrays {
			if err == nil {
				_, err = io.Copy(to, w.section(&v.arrays[k]))
			}
		}
		return err
	})
}

// rewrite replaces the safetensors file of a view by one that fill writes.
func (w *Writer) rewrite(v *viewFiles, format Format, fill func(*bufio.Writer) error) error {
	old := filepath.Join(w.dir, filepath.FromSlash(v.name)+".safetensors")
	f, err := os.Create(old + ".new")
	if err != nil {
		return err
	}
	to := bufio.NewWriterSize(f, 1<<20)
	err = fill(to)
	if err == nil {
		err = to.Flush()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	path := filepath.Join(w.dir, filepath.FromSlash(v.name)+"."+string(format))
	if path != old {
		if err := os.Remove(old); err != nil {
			return err
		}
	}
	return os.Rename(old+".new", path)
}

// rowGroupBytes is the size of a row group of a Parquet file.
const rowGroupBytes = 64 << 20

// convert writes a Parquet file with a column of lists for each layer.
func (w *Writer) convert(v *viewFiles) error {
	group := parquet.Group{}
	rowBytes := 0
	for _, l := range w.layers {
		group[l.Name] = parquet.List(parquet.Leaf(parquet.FloatType))
		rowBytes += 4 * tensor.Size(l.Shape)
	}
	schema := parquet.NewSchema("activations", group)
	columns := make([]int, len(w.layers)) // of each layer: the schema sorts its columns by name
	for k, l := range w.layers {
		leaf, ok := schema.Lookup(l.Name, "list", "element")
		if !ok {
			return fmt.Errorf("no column for layer %s", l.Name)
		}
		columns[k] = leaf.ColumnIndex
	}
	return w.rewrite(v, Parquet, func(to *bufio.Writer) error {
		out := parquet.NewWriter(to, schema, parquet.Compression(&parquet.Zstd))
		readers := make([]*bufio.Reader, len(v.arrays))
		for k := range v.arrays {
			readers[k] = bufio.NewReaderSize(w.section(&v.arrays[k]), 1<<18)
		}
		pending := 0
		for row := range w.rows {
			values := make(parquet.Row, 0, rowBytes/4)
			byColumn := make([][]parquet.Value, len(w.layers))
			for k := range w.layers {
				raw := make([]byte, 4*v.arrays[k].rowSize)
				if _, err := io.ReadFull(readers[k], raw); err != nil {
					return err
				}
				for i := 0; i < len(raw); i += 4 {
					repetition := min(i, 1)
					x := parquet.FloatValue(math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
					byColumn[columns[k]] = append(byColumn[columns[k]], x.Level(repetition, 1, columns[k]))
				}
			}
			for _, column := range byColumn {
				values = append(values, column...)
			}
			if _, err := out.WriteRows([]parquet.Row{values}); err != nil {
				return err
			}
			if pending += rowBytes; pending > rowGroupBytes && row+1 < w.rows {
				pending = 0
				if err := out.Flush(); err != nil {
					return err
				}
			}
		}
		return out.Close()
	})
}
