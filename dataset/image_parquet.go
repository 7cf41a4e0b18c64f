package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"

	"github.com/noether-ml/noether/internal/parquetbounds"
)

// ParquetOptions are the options of OpenParquet.
type ParquetOptions struct {
	Paths []string // files with the same columns, in order
	Image string   // column of the encoded images; "": the only column that can hold them
	Label string   // column of the labels; "": see OpenParquet
}

// Parquet is a Source of the encoded images in Parquet files.
type Parquet struct {
	metadata
	files  []*os.File
	groups []parquetGroup // those that have rows
	labels []int
	values [][]float64 // values[k][i] is the value of factor k for sample i
	rows   int64       // of the files that are open
	notes  []string

	mu     sync.Mutex    // guards the fields below
	pages  []parquetPage // a cache, with the page that was used last first
	reader parquet.Pages // of the images of one row group; nil: none
	next   int           // index of the sample that reader reads next
	end    int           // index after the last sample of reader's row group
}

// OpenParquet opens images in Parquet files, as the package datasets of Hugging Face writes them. A
// column of bytes, or of groups with a field named bytes, contains an encoded image in each row,
// which is a sample.
//
// The label is the column named label or fine_label, or the only column that the metadata of
// Hugging Face datasets declare a ClassLabel. The metadata of a ClassLabel name the classes.
// Without them the labels are whole numbers, the indices of classes, or texts, and the classes are
// the sorted texts. Every other column of numbers is a factor, a known property of the samples, if
// it has a finite number in each row. All files must have the same columns.
//
// Labels and factors are read when the files are opened, images when At is called. If the files
// have no page index, images are read slowly in any order but that of the rows.
//
// The fingerprint hashes the labels, the names of the classes and of the factors, and the content
// of the files, whose hashes are kept as those of OpenFolder.
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
	var texts []string // the label of each row as text; "": no label
	for i, path := range o.Paths {
		err := d.watch(ctx, path)
		if err != nil {
			return fmt.Errorf("opening %s: %w", path, err)
		}
		err = guardParquet(func() error {
			f, err := p.openFile(path)
			if err != nil {
				return err
			}
			c, err := findColumns(f, o)
			if err != nil {
				return err
			}
			if err := p.checkPages(f, c); err != nil {
				return err
			}
			if i == 0 {
				columns = c
			} else if err := columns.checkSame(c); err != nil {
				return err
			}
			row := 0
			for _, g := range f.RowGroups() {
				if g.NumRows() > 0 {
					p.groups = append(p.groups, parquetGroup{filepath.Base(path), i, row, len(texts), g.ColumnChunks()[c.image]})
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
	var err error
	if p.labels, p.classes, err = labelsOf(texts); err != nil {
		return fmt.Errorf("opening %s: column %s: %w", strings.Join(o.Paths, ", "), columns.label.name, err)
	}
	if columns.label.name == "" {
		p.classes = nil
	} else if names := columns.label.classes; names != nil {
		if columns.label.names {
			if err := p.byName(names); err != nil {
				return fmt.Errorf("opening %s: column %s: %w", o.Paths[0], columns.label.name, err)
			}
		} else if len(p.classes) > len(names) {
			return fmt.Errorf("opening %s: the metadata name %d classes, and column %s has label %d", o.Paths[0], len(names), columns.label.name, len(p.classes)-1)
		}
		p.classes = names
	}
	if columns.note != "" {
		p.notes = append(p.notes, columns.note)
	}
	for _, c := range columns.factors {
		if len(c.values) == len(texts) {
			p.factors, p.values = append(p.factors, c.name), append(p.values, c.values)
			d.add(c.name)
		}
	}
	d.add(p.classes, p.labels)
	p.setFingerprint(d)
	return nil
}

// byName replaces labels, indices into the sorted texts, by those of the same names in a list.
func (p *Parquet) byName(names []string) error {
	places := make([]int, len(p.classes))
	for i, class := range p.classes {
		if places[i] = slices.Index(names, class); places[i] < 0 {
			return fmt.Errorf("the metadata name no class %q, which is a label", class)
		}
	}
	for i, label := range p.labels {
		if label != NoLabel {
			p.labels[i] = places[label]
		}
	}
	return nil
}

// Notes returns a note on labels that were not found.
func (p *Parquet) Notes() []string { return p.notes }

// checkPages checks the pages of the columns of an open file, and that the labels and factors of
// all files so far fit into memory.
func (p *Parquet) checkPages(f *parquet.File, c parquetColumns) error {
	indices := []int{c.image}
	if c.label.name != "" {
		indices = append(indices, c.label.index)
	}
	for _, factor := range c.factors {
		indices = append(indices, factor.index)
	}
	const perRow = 24 // bytes of a label and its text
	p.rows += f.NumRows()
	if limit := decompressedLimit(); p.rows > limit/int64(perRow+8*len(c.factors)) {
		return fmt.Errorf("the labels and factors of %d rows take more than %d bytes: use fewer files or columns", p.rows, limit)
	}
	return parquetbounds.Check(p.files[len(p.files)-1], f, indices, maxFile)
}

// guardParquet calls f, and returns a panic as an error: package parquet can panic on a damaged
// file.
func guardParquet(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the file is damaged: %v", r)
		}
	}()
	return f()
}

// openFile opens a file, which p.Close closes.
func (p *Parquet) openFile(path string) (*parquet.File, error) {
	file, size, err := openSized(path)
	if err != nil {
		return nil, err
	}
	p.files = append(p.files, file)
	f, err := parquetbounds.Open(file, size)
	if err != nil {
		return nil, explainHDF5(path, err)
	}
	return f, parquetbounds.CheckRows(f, size)
}

func (p *Parquet) Len() int { return len(p.labels) }

// Describe returns image i without its pixels. Its name is that of the file and the number of the
// row, from 0.
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

// At decodes image i. If the image cannot be read, the error is a *BadSample.
func (p *Parquet) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "Parquet files", i, len(p.labels)); err != nil {
		return Sample{}, err
	}
	return p.watched.read(ctx, p.groups[p.locate(i)].source, func() (Sample, error) {
		sample := p.Describe(i)
		data, err := p.encoded(i)
		if err == nil {
			sample.Input, err = frameEncoded(ctx, bytes.NewReader(data), int64(len(data)), frame)
		}
		return sample, asBadSample(ctx, sample.Name, err)
	})
}

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
