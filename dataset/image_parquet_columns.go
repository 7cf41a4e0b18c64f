package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/noether-ml/noether/internal/intern"
)

// parquetColumns are the columns that are read of each file. Columns of numbers other than the
// labels are factors.
type parquetColumns struct {
	image   int // index of the column
	label   labelColumn
	note    string // on labels that were not found
	factors []factorColumn
}

type labelColumn struct {
	name    string // "": no labels
	index   int
	classes []string // names of the classes in the metadata; nil: none
	names   bool     // the labels are text, not numbers
	known   intern.Texts
}

type factorColumn struct {
	name   string
	index  int
	values []float64 // of the rows read so far; nil if gaps
	gaps   bool      // whether a row has no finite number
}

// checkSame returns an error if the columns of another file differ.
func (c *parquetColumns) checkSame(other parquetColumns) error {
	equal := c.image == other.image && c.label.name == other.label.name && slices.Equal(c.label.classes, other.label.classes) &&
		slices.EqualFunc(c.factors, other.factors, func(a, b factorColumn) bool { return a.name == b.name && a.index == b.index })
	if !equal {
		return errors.New("its columns or classes differ from those of the first file")
	}
	return nil
}

// findColumns finds the columns of encoded images, labels and factors. Hugging Face stores an image
// as a group with a field bytes. o.Image and o.Label name the columns of images and labels; "":
// they are detected.
func findColumns(f *parquet.File, o ParquetOptions) (c parquetColumns, err error) {
	var images []string // names of the columns that can hold images
	var leaves []string // names of all columns that hold values
	s := f.Schema()
	for _, path := range s.Columns() {
		leaf, _ := s.Lookup(path...)
		name := strings.Join(path, ".")
		leaves = append(leaves, name)
		kind := leaf.Node.Type().Kind()
		if leaf.MaxRepetitionLevel > 0 { // a list in each row
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
		return c, fmt.Errorf("several columns can hold the images: %s; set image to one of them", strings.Join(images, ", "))
	}
	if c.label, c.note, err = findLabels(f, o.Label, leaves); err != nil {
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

// usualLabels are the names of columns of labels, and otherLabels those of columns that may be so.
var (
	usualLabels = []string{"label", "fine_label"}
	otherLabels = []string{"labels", "fine_labels", "coarse_label", "class", "classes", "target", "targets", "category"}
)

// findLabels finds the column of labels. If name is "", it is label, fine_label or else the only
// ClassLabel of the metadata; without any of these the data have no labels, which is no error, and
// note says which columns may hold some. A name without a column is an error. leaves are the names
// of all columns.
func findLabels(f *parquet.File, name string, leaves []string) (c labelColumn, note string, err error) {
	named := classLabels(f)
	detected := name == ""
	if detected {
		for _, usual := range usualLabels {
			if slices.ContainsFunc(leaves, func(leaf string) bool { return leaf == usual || isListOf(leaf, usual) }) {
				name = usual
				break
			}
		}
	}
	if name == "" && len(named) == 1 {
		for name = range named { // the only key
		}
	}
	if name == "" {
		candidates := slices.Sorted(maps.Keys(named))
		for _, leaf := range leaves {
			if before, _, _ := strings.Cut(leaf, "."); slices.Contains(otherLabels, before) && !slices.Contains(candidates, before) {
				candidates = append(candidates, before)
			}
		}
		if len(candidates) > 0 {
			note = "the images have no labels, which columns may hold: set label to " + strings.Join(candidates, " or ")
		}
		return c, note, nil
	}
	leaf, ok := f.Schema().Lookup(name)
	list := slices.ContainsFunc(leaves, func(leaf string) bool { return isListOf(leaf, name) }) || ok && leaf.MaxRepetitionLevel > 0
	switch {
	case list && detected:
		return c, fmt.Sprintf("column %s holds a list in each row, so the images have no labels", name), nil
	case list:
		return c, "", fmt.Errorf("column %s holds a list in each row: labels are one whole number or text", name)
	case !ok:
		return c, "", fmt.Errorf("no column %q of labels: the columns are %s", name, strings.Join(leaves, ", "))
	}
	kind := leaf.Node.Type().Kind()
	if !slices.Contains([]parquet.Kind{parquet.Int32, parquet.Int64, parquet.Float, parquet.Double, parquet.ByteArray}, kind) {
		return c, "", fmt.Errorf("column %s holds %v: labels are whole numbers or text", name, leaf.Node.Type())
	}
	return labelColumn{name: name, index: leaf.ColumnIndex, classes: named[name], names: kind == parquet.ByteArray, known: intern.Texts{}}, "", nil
}

// isListOf reports whether a column that holds values is that of a list in a column of a name, as
// Arrow stores it.
func isListOf(leaf, name string) bool { return strings.HasPrefix(leaf, name+".list.") }

// classLabels returns the names of the classes of each column whose type in the metadata of Hugging
// Face datasets is ClassLabel.
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

// read appends the labels of a row group to texts ("" where there is none), and its numbers to the
// values of the factors.
func (c *parquetColumns) read(ctx context.Context, g parquet.RowGroup, texts *[]string) error {
	rows, before := int(g.NumRows()), len(*texts)
	if c.label.name == "" {
		*texts = append(*texts, make([]string, rows)...)
	} else if err := eachValue(ctx, g.ColumnChunks()[c.label.index], func(v parquet.Value) error {
		*texts = append(*texts, c.label.text(v))
		return nil
	}); err != nil {
		return fmt.Errorf("column %s: %w", c.label.name, err)
	}
	if n := len(*texts) - before; n != rows {
		return fmt.Errorf("the file is damaged: column %s has %d values in %d rows", c.label.name, n, rows)
	}
	for i := range c.factors {
		f := &c.factors[i]
		if err := eachValue(ctx, g.ColumnChunks()[f.index], f.add); err != nil {
			return fmt.Errorf("column %s: %w", f.name, err)
		}
	}
	return nil
}

// text returns the label of a row as text, "" for null.
func (c *labelColumn) text(v parquet.Value) string {
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'f', -1, 64)
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'f', -1, 64)
	case parquet.ByteArray:
		text, _ := c.known.Of(v.ByteArray(), func([]byte) bool { return true })
		return text
	}
	return "" // null
}

// add appends the number of the next row. A null or a number that is not finite is a gap: the
// column is then no factor, and its values are dropped.
func (f *factorColumn) add(v parquet.Value) error {
	x, ok := number(v)
	if f.gaps = f.gaps || !ok || math.IsNaN(x) || math.IsInf(x, 0); f.gaps {
		f.values = nil
		return nil
	}
	f.values = append(f.values, x)
	return nil
}

// eachValue calls use for each value of a column chunk until it returns an error. A value is valid
// only during the call.
func eachValue(ctx context.Context, chunk parquet.ColumnChunk, use func(parquet.Value) error) error {
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

func pageValues(page parquet.Page, use func(parquet.Value) error) error {
	values := page.Values()
	var buffer [64]parquet.Value
	for {
		n, err := values.ReadValues(buffer[:])
		for _, v := range buffer[:n] {
			if err := use(v); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
