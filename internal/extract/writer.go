package extract

import (
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/tensor"
)

// A Format is the format of the files.
type Format string

// The formats.
const (
	Safetensors Format = "safetensors" // a file for each view
	NPY         Format = "npy"         // a file for each layer and view, in folders
	Parquet     Format = "parquet"     // a file for each view, with a column for each layer; activations are flattened
	Zarr        Format = "zarr"        // a folder for each layer and view, in folders
)

// Formats returns all formats.
func Formats() []Format { return []Format{Safetensors, NPY, Parquet, Zarr} }

// Options say how activations are stored. The zero Pool keeps them whole.
type Options struct {
	Format Format
	Pool   pooling.Kind
}

// An Entry of the file activations.json tells where the array of a layer and view is.
type Entry struct {
	View  string      `json:"view"` // "clean", or the transformation, its value and trial
	Layer string      `json:"layer"`
	File  string      `json:"file"`          // relative to the folder
	Key   string      `json:"key,omitempty"` // of the array in the file, if that has several
	Shape []int       `json:"shape"`         // samples x ...
	Axes  tensor.Axes `json:"axes,omitempty"`
}

// A Writer writes the activations of one model on one data set to a folder: its arrays,
// samples.csv, whose rows name the samples of the arrays' rows, and activations.json, a list of
// Entry.
type Writer struct {
	dir     string
	options Options
	layers  []tensor.Layer // as stored
	pools   []func(dst, z []float32)
	views   map[string]*viewFiles
	order   []string // of views
	samples int      // that the files have room for
	list    *os.File
	names   *csv.Writer
	rows    int // announced samples
	batch   int // of these, samples of the last announcement

	// NonFinite holds the layers whose activations contain NaN or infinity.
	NonFinite map[string]bool
}

// NewWriter makes the folder, which must be missing or empty, for activations at the layers under
// views ("": clean) of at most the given number of samples.
func NewWriter(dir string, o Options, layers []tensor.Layer, views []string, samples int) (*Writer, error) {
	w := &Writer{dir: dir, options: o, views: map[string]*viewFiles{}, samples: samples, NonFinite: map[string]bool{}}
	if !slices.Contains(Formats(), o.Format) {
		return nil, fmt.Errorf("unknown format %q: it must be safetensors, npy, parquet or zarr", o.Format)
	}
	for _, l := range layers {
		pool := o.Pool
		if pool == "" && o.Format == Parquet {
			pool = pooling.Flatten // its columns hold vectors
		}
		if pool == "" {
			w.layers, w.pools = append(w.layers, l), append(w.pools, nil)
			continue
		}
		if err := pool.Check(l); err != nil {
			return nil, err
		}
		w.layers = append(w.layers, tensor.Layer{Name: l.Name, Depth: l.Depth, Shape: []int{pool.Dim(l)}, Axes: "NC"})
		w.pools = append(w.pools, pool.Pool(l))
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var err error
	if w.list, err = os.Create(filepath.Join(dir, "samples.csv")); err != nil {
		return nil, err
	}
	w.names = csv.NewWriter(w.list)
	err = w.names.Write([]string{"row", "sample", "index", "label"})
	for _, v := range views {
		if err == nil {
			w.order = append(w.order, v)
			w.views[v], err = w.open(folderOf(v))
		}
	}
	if err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// Rows returns the number of samples so far.
func (w *Writer) Rows() int { return w.rows }

// folderOf returns the name of a view in the folder, as package recorded reads it.
func folderOf(view string) string {
	if view == "" {
		return "clean"
	}
	return view
}

// Samples implements run.Sink.
func (w *Writer) Samples(samples []dataset.Sample) error {
	if w.rows+len(samples) > w.samples {
		return fmt.Errorf("%d samples, where %d were announced", w.rows+len(samples), w.samples)
	}
	for i, s := range samples {
		label := ""
		if s.Label >= 0 {
			label = strconv.Itoa(s.Label)
		}
		if err := w.names.Write([]string{strconv.Itoa(w.rows + i), s.Name, strconv.Itoa(s.Index), label}); err != nil {
			return err
		}
	}
	w.rows, w.batch = w.rows+len(samples), len(samples)
	return nil
}

// Write implements run.Sink.
func (w *Writer) Write(view string, z []tensor.Tensor) error {
	v := w.views[view]
	for k, l := range w.layers {
		values := z[k].Slice(0, w.batch)
		if values.FirstNonFinite() >= 0 {
			w.NonFinite[l.Name] = true
		}
		if pool := w.pools[k]; pool != nil && !slices.Equal(values.Shape[1:], l.Shape) { // the engine may have pooled it
			pooled := tensor.New(append([]int{w.batch}, l.Shape...)...)
			for i := range w.batch {
				pool(pooled.At(i).Data, values.At(i).Data)
			}
			values = pooled
		}
		if err := v.arrays[k].write(w.rows-w.batch, values.Data); err != nil {
			return err
		}
	}
	return nil
}

// Close completes the files. Rows of announced samples that were not read are cut off.
func (w *Writer) Close() error {
	w.names.Flush()
	err := errors.Join(w.names.Error(), w.list.Close())
	var entries []Entry
	for _, view := range w.order {
		v := w.views[view]
		err = errors.Join(err, w.finish(v))
		entries = append(entries, v.entries(w)...)
	}
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, "activations.json"), append(raw, '\n'), 0o666)
}

// Abort implements run.Sink.
func (w *Writer) Abort() {
	w.list.Close()
	for _, v := range w.views {
		if v != nil {
			v.close()
		}
	}
}

// viewFiles are the files of a view.
type viewFiles struct {
	name   string // such as rotate/90
	arrays []array
}

// An arrayFile is an *os.File or a *zarrArray.
type arrayFile interface {
	io.WriterAt
	io.Closer
}

// An array is a part of a file with the values of a layer.
type array struct {
	file    arrayFile
	at      int64 // offset of the first row
	rowSize int   // values
	scratch *[]byte
}

func (a *array) write(row int, values []float32) error {
	raw := (*a.scratch)[:0]
	for _, x := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	*a.scratch = raw
	_, err := a.file.WriteAt(raw, a.at+4*int64(row)*int64(a.rowSize))
	return err
}

func (v *viewFiles) close() (err error) {
	closed := map[arrayFile]bool{}
	for _, a := range v.arrays {
		if !closed[a.file] {
			closed[a.file] = true
			err = errors.Join(err, a.file.Close())
		}
	}
	return err
}

// open makes the files of a view. For Parquet, which is written from first to last row, the file
// is a safetensors file until Close.
func (w *Writer) open(name string) (*viewFiles, error) {
	v := &viewFiles{name: name}
	scratch := &[]byte{}
	base := filepath.Join(w.dir, filepath.FromSlash(name))
	if w.options.Format == NPY || w.options.Format == Zarr {
		for _, l := range w.layers {
			path := filepath.Join(base, filepath.FromSlash(layerFile(l.Name))+"."+string(w.options.Format))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return v, err
			}
			if w.options.Format == Zarr {
				z, err := newZarrArray(path, l.Shape, w.samples)
				if err != nil {
					return v, err
				}
				v.arrays = append(v.arrays, array{z, 0, tensor.Size(l.Shape), scratch})
				continue
			}
			f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
			if err != nil {
				return v, err
			}
			v.arrays = append(v.arrays, array{f, npyHeader, tensor.Size(l.Shape), scratch})
		}
		return v, nil
	}
	if err := os.MkdirAll(filepath.Dir(base), 0o777); err != nil {
		return v, err
	}
	f, err := os.OpenFile(base+".safetensors", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return v, err
	}
	header, offsets, err := safetensorsHeader(w.layers, w.samples)
	if err == nil {
		_, err = f.Write(header)
	}
	for k, l := range w.layers {
		v.arrays = append(v.arrays, array{f, int64(len(header)) + offsets[k], tensor.Size(l.Shape), scratch})
	}
	return v, err
}

// layerFile returns the path of a layer's file without its extension: that of the layer's name
// without a slash at its start. Names such as .. or a:b, which are no paths everywhere, are quoted.
func layerFile(name string) string {
	name = strings.TrimLeft(name, "/")
	if filepath.IsLocal(filepath.FromSlash(name)) && !strings.ContainsAny(name, `\:*?"<>|`) && !strings.HasSuffix(name, "/") {
		return name
	}
	return strings.NewReplacer("/", "%2F", `\`, "%5C", ":", "%3A", "*", "%2A", "?", "%3F", `"`, "%22", "<", "%3C", ">", "%3E", "|", "%7C").Replace(name) + "_"
}

func (v *viewFiles) entries(w *Writer) (out []Entry) {
	for _, l := range w.layers {
		e := Entry{View: v.name, Layer: l.Name, File: v.name + "." + string(w.options.Format), Key: l.Name, Shape: append([]int{w.rows}, l.Shape...), Axes: l.Axes}
		if w.options.Format == NPY || w.options.Format == Zarr {
			e.File, e.Key = v.name+"/"+layerFile(l.Name)+"."+string(w.options.Format), ""
		}
		out = append(out, e)
	}
	return out
}
