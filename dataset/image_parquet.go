package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
)

// ParquetOptions are the options of OpenParquet.
type ParquetOptions struct {
	Paths []string // files of one schema, in order
	Image string   // column of the encoded images; "": the only one that can hold them
	Label string   // column of the labels; "": see OpenParquet
}

// Parquet is a source over encoded images in Parquet files.
type Parquet struct {
	files       []*os.File
	groups      []parquetGroup // those with rows
	labels      []int
	classes     []string
	factors     []string
	values      [][]float64 // of factors, by sample
	fingerprint string

	mu     sync.Mutex
	pages  []parquetPage // read last, the most recent first
	reader parquet.Pages // of the images of one row group; nil: none
	next   int           // index of the sample that reader reads next
	last   int           // index after the last sample of reader's row group
}

// A parquetGroup is a row group of one of the files.
type parquetGroup struct {
	file   string              // its name, for messages
	row    int                 // of its first sample, in the file
	first  int                 // index of its first sample
	images parquet.ColumnChunk // the encoded images
}

// A parquetPage holds the images of consecutive samples, as they are encoded.
type parquetPage struct {
	first  int
	images [][]byte // nil: the row has none
	size   int
}

// OpenParquet opens images in Parquet files as Hugging Face datasets stores them: a column that is a
// group with the field bytes, or bytes itself, holds an encoded image in each row.
//
// The label is the column named label or fine_label, or the only one that the files' metadata call a
// ClassLabel; its names are the classes. Other columns of labels are numbers, which are indices of
// the classes, or text, whose sorted values are the classes. Every other column of numbers without
// gaps is a factor. All files have the same columns.
//
// Labels and factors are read when the files are opened, images when they are asked for. Files
// without a page index are read quickly in order only.
//
// The fingerprint hashes the labels, the factors and the content of the files (of a file above 256
// MiB, evenly spaced blocks).
func OpenParquet(ctx context.Context, o ParquetOptions) (*Parquet, error) {
	p := &Parquet{}
	if err := p.open(ctx, o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Parquet) open(ctx context.Context, o ParquetOptions) error {
	d := newDigest("parquet")
	var columns parquetColumns
	var texts []string
	for i, path := range o.Paths {
		err := guardParquet(func() error {
			f, err := p.openFile(path)
			if err != nil {
				return err
			}
			c, err := findColumns(f, o)
			if err != nil {
				return err
			}
			if i == 0 {
				columns = c
			} else if err := columns.same(c); err != nil {
				return err
			}
			row := 0
			for _, g := range f.RowGroups() {
				if g.NumRows() > 0 {
					p.groups = append(p.groups, parquetGroup{filepath.Base(path), row, len(texts), g.ColumnChunks()[c.image]})
				}
				row += int(g.NumRows())
				if err := columns.read(ctx, g, &texts); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = d.addFile(ctx, path)
		}
		if err != nil {
			return fmt.Errorf("opening %s: %w", path, err)
		}
	}
	if len(texts) == 0 {
		return fmt.Errorf("opening %s: no rows", strings.Join(o.Paths, ", "))
	}
	p.labels, p.classes = labelsOf(texts)
	if columns.label.name == "" {
		p.classes = nil
	} else if names := columns.label.classes; names != nil {
		if len(p.classes) > len(names) {
			return fmt.Errorf("opening %s: the metadata name %d classes, and column %s has label %d", o.Paths[0], len(names), columns.label.name, len(p.classes)-1)
		}
		p.classes = names
	}
	for _, c := range columns.factors {
		if len(c.values) == len(texts) {
			p.factors, p.values = append(p.factors, c.name), append(p.values, c.values)
			d.add(c.name)
		}
	}
	d.add(p.classes, p.labels)
	p.fingerprint = d.String()
	return nil
}

// guardParquet calls f, and returns a panic of the reader as an error: a damaged file can cause one.
func guardParquet(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the file is damaged: %v", r)
		}
	}()
	return f()
}

// openFile opens a file, which Close closes.
func (p *Parquet) openFile(path string) (*parquet.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p.files = append(p.files, file)
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(file, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("not a whole Parquet file: %w", err)
	}
	return f, nil
}

// parquetColumns are the columns that are read of each file.
type parquetColumns struct {
	image   int
	label   labelColumn
	factors []factorColumn
}

type labelColumn struct {
	name    string // "": none
	index   int
	classes []string // nil: not named
}

type factorColumn struct {
	name   string
	index  int
	values []float64
	gaps   bool
}

// same returns an error if the columns of another file differ.
func (c *parquetColumns) same(other parquetColumns) error {
	equal := c.image == other.image && c.label.name == other.label.name && slices.Equal(c.label.classes, other.label.classes) &&
		slices.EqualFunc(c.factors, other.factors, func(a, b factorColumn) bool { return a.name == b.name && a.index == b.index })
	if !equal {
		return errors.New("its columns or classes differ from those of the first file")
	}
	return nil
}

// findColumns finds the columns of images, labels and factors.
func findColumns(f *parquet.File, o ParquetOptions) (c parquetColumns, err error) {
	var images, leaves []string
	s := f.Schema()
	for _, path := range s.Columns() {
		leaf, _ := s.Lookup(path...)
		name := strings.Join(path, ".")
		leaves = append(leaves, name)
		kind := leaf.Node.Type().Kind()
		if leaf.MaxRepetitionLevel > 0 {
			continue
		}
		encoded := kind == parquet.ByteArray && (len(path) == 2 && path[1] == "bytes" || len(path) == 1 && leaf.Node.Type().LogicalType() == nil)
		if o.Image == "" && encoded || o.Image != "" && (name == o.Image || name == o.Image+".bytes") {
			if kind != parquet.ByteArray {
				return c, fmt.Errorf("column %s holds %v, not encoded images", name, leaf.Node.Type())
			}
			images, c.image = append(images, name), leaf.ColumnIndex
		}
	}
	switch {
	case len(images) == 0 && o.Image != "":
		return c, fmt.Errorf("no column %q of images: the columns are %s", o.Image, strings.Join(leaves, ", "))
	case len(images) == 0:
		return c, fmt.Errorf("no column holds encoded images: the columns are %s", strings.Join(leaves, ", "))
	case len(images) > 1:
		return c, fmt.Errorf("images are in one column, and these can hold them: %s; set image to one of them", strings.Join(images, ", "))
	}
	if c.label, err = findLabels(f, o.Label, leaves); err != nil {
		return c, err
	}
	for _, path := range s.Columns() {
		leaf, _ := s.Lookup(path...)
		kind := leaf.Node.Type().Kind()
		numbers := kind == parquet.Int32 || kind == parquet.Int64 || kind == parquet.Float || kind == parquet.Double
		if numbers && len(path) == 1 && path[0] != c.label.name && leaf.MaxRepetitionLevel == 0 {
			c.factors = append(c.factors, factorColumn{name: path[0], index: leaf.ColumnIndex})
		}
	}
	slices.SortFunc(c.factors, func(a, b factorColumn) int { return strings.Compare(a.name, b.name) })
	return c, nil
}

// findLabels finds the column of labels. No column is no error, unless one is asked for.
func findLabels(f *parquet.File, name string, leaves []string) (labelColumn, error) {
	named := classLabels(f)
	if name == "" {
		for _, usual := range []string{"label", "fine_label"} {
			if slices.Contains(leaves, usual) {
				name = usual
				break
			}
		}
	}
	if name == "" && len(named) == 1 {
		for name = range named {
		}
	}
	if name == "" {
		return labelColumn{}, nil
	}
	leaf, ok := f.Schema().Lookup(name)
	switch kind := parquet.Kind(-1); {
	case !ok:
		return labelColumn{}, fmt.Errorf("no column %q of labels: the columns are %s", name, strings.Join(leaves, ", "))
	default:
		kind = leaf.Node.Type().Kind()
		if leaf.MaxRepetitionLevel > 0 || kind != parquet.Int32 && kind != parquet.Int64 && kind != parquet.ByteArray {
			return labelColumn{}, fmt.Errorf("column %s holds %v: labels are whole numbers or text", name, leaf.Node.Type())
		}
	}
	return labelColumn{name: name, index: leaf.ColumnIndex, classes: named[name]}, nil
}

// classLabels returns the names of the classes of each column that the metadata of Hugging Face
// datasets call a ClassLabel.
func classLabels(f *parquet.File) map[string][]string {
	text, _ := f.Lookup("huggingface")
	var metadata struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(text), &metadata) != nil {
		return nil // no metadata: the labels have no names
	}
	out := map[string][]string{}
	for name, raw := range metadata.Info.Features {
		var feature struct {
			Type  string   `json:"_type"`
			Names []string `json:"names"`
		}
		if json.Unmarshal(raw, &feature) == nil && feature.Type == "ClassLabel" {
			out[name] = feature.Names
		}
	}
	return out
}

// read appends the labels of a row group to texts ("" where there is none), and the values of the
// factors.
func (c *parquetColumns) read(ctx context.Context, g parquet.RowGroup, texts *[]string) error {
	rows, before := int(g.NumRows()), len(*texts)
	if c.label.name == "" {
		*texts = append(*texts, make([]string, rows)...)
	} else if err := eachValue(ctx, g.ColumnChunks()[c.label.index], func(v parquet.Value) { *texts = append(*texts, labelText(v)) }); err != nil {
		return fmt.Errorf("column %s: %w", c.label.name, err)
	}
	if got := len(*texts) - before; got != rows {
		return fmt.Errorf("the file is damaged: column %s has %d values in %d rows", c.label.name, got, rows)
	}
	for i := range c.factors {
		f := &c.factors[i]
		if err := eachValue(ctx, g.ColumnChunks()[f.index], f.add); err != nil {
			return fmt.Errorf("column %s: %w", f.name, err)
		}
	}
	return nil
}

func labelText(v parquet.Value) string {
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	case parquet.ByteArray:
		return strings.Clone(string(v.ByteArray()))
	}
	return "" // null
}

// add appends a value, unless there was a gap: null, or not finite.
func (f *factorColumn) add(v parquet.Value) {
	x := math.NaN()
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		x = float64(v.Int64())
	case parquet.Float:
		x = float64(v.Float())
	case parquet.Double:
		x = v.Double()
	}
	if f.gaps = f.gaps || math.IsNaN(x) || math.IsInf(x, 0); f.gaps {
		f.values = nil
		return
	}
	f.values = append(f.values, x)
}

// eachValue calls use for each value of a column chunk. A value is valid during the call.
func eachValue(ctx context.Context, chunk parquet.ColumnChunk, use func(parquet.Value)) error {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = pageValues(page, use)
		parquet.Release(page)
		if err != nil {
			return err
		}
	}
}

func pageValues(page parquet.Page, use func(parquet.Value)) error {
	values := page.Values()
	var buffer [64]parquet.Value
	for {
		n, err := values.ReadValues(buffer[:])
		for _, v := range buffer[:n] {
			use(v)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Len returns the number of rows.
func (p *Parquet) Len() int { return len(p.labels) }

// Classes returns the names of the labels; nil if there are none.
func (p *Parquet) Classes() []string { return p.classes }

// Factors returns the names of the columns of numbers.
func (p *Parquet) Factors() []string { return p.factors }

// Fingerprint returns the fingerprint that OpenParquet describes.
func (p *Parquet) Fingerprint() string { return p.fingerprint }

// Describe returns image i without its pixels. Its name is the file's and the row, from 0.
func (p *Parquet) Describe(i int) Sample {
	g := p.groups[p.locate(i)]
	s := Sample{Index: i, Name: fmt.Sprintf("%s#%d", g.file, g.row+i-g.first), Label: p.labels[i]}
	for k, name := range p.factors {
		if s.Factors == nil {
			s.Factors = map[string]float64{}
		}
		s.Factors[name] = p.values[k][i]
	}
	return s
}

// locate returns the index of the row group of sample i.
func (p *Parquet) locate(i int) int {
	return sort.Search(len(p.groups), func(k int) bool { return p.groups[k].first > i }) - 1
}

// At decodes image i. If it cannot be read, the error is a *BadSample.
func (p *Parquet) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "Parquet files", i, len(p.labels)); err != nil {
		return Sample{}, err
	}
	sample := p.Describe(i)
	data, err := p.encoded(i)
	if err == nil {
		sample.Input, err = frameEncoded(ctx, bytes.NewReader(data), int64(len(data)), frame)
	}
	return sample, asBadSample(ctx, sample.Name, err)
}

// Bounds of the pages that are kept: several workers read neighbouring rows.
const (
	keptPages = 8
	keptBytes = 256 << 20
)

// encoded returns the bytes of image i.
func (p *Parquet) encoded(i int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, page := range p.pages {
		if page.first <= i && i < page.first+len(page.images) {
			p.pages = slices.Insert(slices.Delete(p.pages, k, k+1), 0, page)
			return page.at(i)
		}
	}
	var page parquetPage
	err := guardParquet(func() (err error) {
		page, err = p.readPage(i)
		return err
	})
	if err != nil {
		p.closeReader()
		return nil, err
	}
	p.pages = slices.Insert(p.pages, 0, page)
	size := 0
	for k := range p.pages {
		if size += p.pages[k].size; k > 0 && (k >= keptPages || size > keptBytes) {
			p.pages = slices.Delete(p.pages, k, len(p.pages))
			break
		}
	}
	return page.at(i)
}

func (g parquetPage) at(i int) ([]byte, error) {
	if data := g.images[i-g.first]; data != nil {
		return data, nil
	}
	return nil, errors.New("the row has no image")
}

// readPage reads the page with sample i. It reads on where the sample is the next one, else it seeks.
func (p *Parquet) readPage(i int) (parquetPage, error) {
	if p.reader == nil || p.next != i || i >= p.last {
		p.closeReader()
		k := p.locate(i)
		p.reader = p.groups[k].images.Pages()
		p.last = len(p.labels)
		if k+1 < len(p.groups) {
			p.last = p.groups[k+1].first
		}
		if err := p.reader.SeekToRow(int64(i - p.groups[k].first)); err != nil {
			return parquetPage{}, err
		}
	}
	page, err := p.reader.ReadPage()
	if errors.Is(err, io.EOF) {
		err = errors.New("the file is damaged: a row group ends too early")
	}
	if err != nil {
		return parquetPage{}, err
	}
	defer parquet.Release(page)
	out := parquetPage{first: i, size: int(page.Size())}
	err = pageValues(page, func(v parquet.Value) {
		var data []byte
		if !v.IsNull() {
			data = append([]byte{}, v.ByteArray()...)
		}
		out.images = append(out.images, data)
	})
	if err == nil && len(out.images) == 0 {
		err = errors.New("the file is damaged: a page has no rows")
	}
	p.next = i + len(out.images)
	return out, err
}

func (p *Parquet) closeReader() {
	if p.reader != nil {
		p.reader.Close()
		p.reader = nil
	}
}

// Close closes the files.
func (p *Parquet) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeReader()
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
