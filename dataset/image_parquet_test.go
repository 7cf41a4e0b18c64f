package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A huggingFaceRow is a row of an image data set in the layout of the Hugging Face Hub. Columns of
// numbers besides the label are factors of a sample; the text Camera is none.
type huggingFaceRow struct {
	Image struct {
		Bytes []byte  `parquet:"bytes,optional"`
		Path  *string `parquet:"path,optional"`
	} `parquet:"image,optional"`
	Label  *int64  `parquet:"label,optional"` // a pointer: an optional 0 is written as null
	Angle  float64 `parquet:"angle"`
	Zero   float64 `parquet:"zero"`
	Camera string  `parquet:"camera"`
}

// classMetadata is what Hugging Face writes beside the rows: the types of columns and the names of
// classes.
const classMetadata = `{"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog", "owl"], "_type": "ClassLabel"}, "tags": [{"dtype": "string"}]}}}`

// rowsOf returns the rows first to first + n - 1. Row i has an image of one pixel (see dot) of
// value i, the label i mod 3 and the angle i / 2.
func rowsOf(t testing.TB, first, n int) []huggingFaceRow {
	var rows []huggingFaceRow
	for i := first; i < first+n; i++ {
		label := int64(i % 3)
		r := huggingFaceRow{Label: &label, Angle: float64(i) / 2, Camera: "a"}
		r.Image.Bytes = dot(t, uint8(i))
		rows = append(rows, r)
	}
	return rows
}

// parquetOf writes rows into a file with small pages, and the given number of rows in a row group.
func parquetOf[T any](t testing.TB, rows []T, group int, options ...parquet.WriterOption) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, append(options, parquet.PageBufferSize(400), parquet.Compression(&parquet.Snappy))...)
	for part := range slices.Chunk(rows, group) {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "test.parquet")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func openParquet(t testing.TB, o ParquetOptions) *Parquet {
	t.Helper()
	p, err := OpenParquet(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// TestParquetOfHuggingFace reads two files, in several orders and by several goroutines.
func TestParquetOfHuggingFace(t *testing.T) {
	t.Parallel()
	metadata := parquet.KeyValueMetadata("huggingface", classMetadata)
	files := []string{parquetOf(t, rowsOf(t, 0, 70), 30, metadata), parquetOf(t, rowsOf(t, 70, 50), 50, metadata)}
	p := openParquet(t, ParquetOptions{Paths: files})
	if p.Len() != 120 || !slices.Equal(p.Classes(), []string{"cat", "dog", "owl"}) || !slices.Equal(p.Factors(), []string{"angle", "zero"}) {
		t.Fatalf("%d samples, classes %q, factors %q", p.Len(), p.Classes(), p.Factors())
	}
	check := func(i int) error {
		s, err := p.At(t.Context(), i, Frame{}) // Frame{}: not resized
		if err != nil {
			return err
		}
		row := i // in its file: the first file has 70 rows
		if i >= 70 {
			row -= 70
		}
		if s.Input.Data[0] != float32(i)/255 || s.Label != i%3 || s.Factors["angle"] != float64(i)/2 || s.Index != i || s.Name != fmt.Sprintf("test.parquet#%d", row) {
			return fmt.Errorf("sample %d is %+v", i, s)
		}
		return nil
	}
	for i := range p.Len() { // in order, backwards and in steps of 37; then by several goroutines
		if err := errors.Join(check(i), check(p.Len()-1-i), check(i*37%p.Len())); err != nil {
			t.Error(err)
		}
	}
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := worker; i < p.Len(); i += 4 {
				if err := check(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

// TestParquetLabels checks labels as text. listing returns the name and the class of each sample.
func TestParquetLabels(t *testing.T) {
	t.Parallel()
	type textRow struct {
		Img   []byte `parquet:"img"`
		Breed string `parquet:"breed"`
	}
	rows := []textRow{{dot(t, 1), "pug"}, {dot(t, 2), "akita"}, {dot(t, 3), "pug"}}
	path := parquetOf(t, rows, 3)
	p := openParquet(t, ParquetOptions{Paths: []string{path}})
	if p.Classes() != nil || p.Describe(0).Label != NoLabel {
		t.Errorf("without a label column: classes %q, label %d", p.Classes(), p.Describe(0).Label)
	}
	p = openParquet(t, ParquetOptions{Paths: []string{path}, Label: "breed"})
	if got, want := listing(t, p), []string{"test.parquet#0 pug", "test.parquet#1 akita", "test.parquet#2 pug"}; !slices.Equal(got, want) {
		t.Errorf("labels as text: %q, want %q", got, want)
	}
	type floatRow struct {
		Img   []byte  `parquet:"img"`
		Label float64 `parquet:"label"`
	}
	floats := []floatRow{{dot(t, 1), 2}, {dot(t, 2), math.NaN()}, {dot(t, 3), 0}}
	p = openParquet(t, ParquetOptions{Paths: []string{parquetOf(t, floats, 3)}})
	if a, b, c := p.Describe(0).Label, p.Describe(1).Label, p.Describe(2).Label; a != 2 || b != NoLabel || c != 0 {
		t.Errorf("labels 2.0, NaN and 0.0 are %d, %d and %d", a, b, c)
	}
	floats[1].Label = 3.5
	_, err := OpenParquet(t.Context(), ParquetOptions{Paths: []string{parquetOf(t, floats, 3)}})
	wantErrorContaining(t, err, `column label: label "3.5" is not a whole number`)
}

// TestParquetLabelsThatAreNoNumbers checks labels that are lists, texts of classes that the metadata
// name in another order, and columns of other names.
func TestParquetLabelsThatAreNoNumbers(t *testing.T) {
	t.Parallel()
	type listRow struct {
		Img   []byte  `parquet:"img"`
		Label []int64 `parquet:"label,list"`
	}
	lists := parquetOf(t, []listRow{{dot(t, 1), []int64{2}}, {dot(t, 2), []int64{0, 1}}}, 2)
	p := openParquet(t, ParquetOptions{Paths: []string{lists}})
	if notes := strings.Join(Notes(p), "\n"); p.Describe(0).Label != NoLabel || !strings.Contains(notes, "column label holds a list in each row, so the images have no labels") {
		t.Errorf("lists: label %d, notes %q", p.Describe(0).Label, notes)
	}
	_, err := OpenParquet(t.Context(), ParquetOptions{Paths: []string{lists}, Label: "label"})
	wantErrorContaining(t, err, "column label holds a list in each row: labels are one whole number or text")
	type repeatedRow struct {
		Img   []byte  `parquet:"img"`
		Label []int64 `parquet:"label"`
	}
	p = openParquet(t, ParquetOptions{Paths: []string{parquetOf(t, []repeatedRow{{dot(t, 1), []int64{2}}}, 1)}})
	if notes := strings.Join(Notes(p), "\n"); !strings.Contains(notes, "holds a list") {
		t.Errorf("a repeated column: notes %q", notes)
	}

	type textRow struct {
		Img   []byte `parquet:"img"`
		Label string `parquet:"label"`
	}
	metadata := parquet.KeyValueMetadata("huggingface", `{"info": {"features": {"label": {"names": ["owl", "dog", "cat"], "_type": "ClassLabel"}}}}`)
	p = openParquet(t, ParquetOptions{Paths: []string{parquetOf(t, []textRow{{dot(t, 1), "cat"}, {dot(t, 2), "owl"}, {dot(t, 3), ""}}, 3, metadata)}})
	if a, b, c := p.Describe(0).Label, p.Describe(1).Label, p.Describe(2).Label; a != 2 || b != 0 || c != NoLabel || len(p.Classes()) != 3 {
		t.Errorf("cat, owl and an empty text are %d, %d and %d of %q", a, b, c, p.Classes())
	}
	_, err = OpenParquet(t.Context(), ParquetOptions{Paths: []string{parquetOf(t, []textRow{{dot(t, 1), "fox"}}, 1, metadata)}})
	wantErrorContaining(t, err, `the metadata name no class "fox"`)

	type otherRow struct {
		Img    []byte `parquet:"img"`
		Labels int64  `parquet:"labels"`
		Breed  int64  `parquet:"breed"`
	}
	p = openParquet(t, ParquetOptions{Paths: []string{parquetOf(t, []otherRow{{dot(t, 1), 2, 3}}, 1)}})
	if notes := strings.Join(Notes(p), "\n"); !strings.Contains(notes, "the images have no labels, which columns may hold: set label to labels") {
		t.Errorf("a column labels: notes %q", notes)
	}
	two := parquet.KeyValueMetadata("huggingface", `{"info": {"features": {"breed": {"names": ["a"], "_type": "ClassLabel"}, "age": {"names": ["b"], "_type": "ClassLabel"}}}}`)
	p = openParquet(t, ParquetOptions{Paths: []string{parquetOf(t, []otherRow{{dot(t, 1), 2, 0}}, 1, two)}})
	if notes := strings.Join(Notes(p), "\n"); !strings.Contains(notes, "set label to age or breed or labels") {
		t.Errorf("two ClassLabels: notes %q", notes)
	}
}

func TestParquetErrors(t *testing.T) {
	t.Parallel()
	type numberRow struct {
		Image int64 `parquet:"image"`
		Label int64 `parquet:"label"`
	}
	type imagePairRow struct {
		Left  []byte `parquet:"left"`
		Right []byte `parquet:"right"`
		Label bool   `parquet:"label"`
	}
	whole, err := os.ReadFile(parquetOf(t, rowsOf(t, 0, 9), 3))
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.parquet")
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	pair := []imagePairRow{{dot(t, 1), dot(t, 2), true}}
	cases := []struct {
		name string
		o    ParquetOptions
		want string
	}{
		{"no image column", ParquetOptions{Paths: []string{parquetOf(t, []numberRow{{1, 2}}, 1)}}, "no column holds encoded images: the columns are image, label"},
		{"the image column has numbers", ParquetOptions{Paths: []string{parquetOf(t, []numberRow{{1, 2}}, 1)}, Image: "image"}, "not encoded images"},
		{"no such image column", ParquetOptions{Paths: []string{parquetOf(t, rowsOf(t, 0, 3), 3)}, Image: "picture"}, `no column "picture"`},
		{"two image columns", ParquetOptions{Paths: []string{parquetOf(t, pair, 1)}}, "set image to one of them"},
		{"labels are booleans", ParquetOptions{Paths: []string{parquetOf(t, pair, 1)}, Image: "left"}, "labels are whole numbers or text"},
		{"no such label column", ParquetOptions{Paths: []string{parquetOf(t, rowsOf(t, 0, 3), 3)}, Label: "kind"}, `no column "kind" of labels`},
		{"files with different columns", ParquetOptions{Paths: []string{parquetOf(t, rowsOf(t, 0, 3), 3), parquetOf(t, pair, 1)}, Image: "image"}, "no column"},
		{"no rows", ParquetOptions{Paths: []string{parquetOf(t, rowsOf(t, 0, 0), 3)}}, "no rows"},
		{"truncated", ParquetOptions{Paths: []string{cut}}, "not a whole Parquet file"},
		{"missing", ParquetOptions{Paths: []string{filepath.Join(t.TempDir(), "none.parquet")}}, "no such file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := OpenParquet(t.Context(), c.o)
			if err == nil {
				p.Close()
			}
			wantErrorContaining(t, err, c.want)
		})
	}
}

// TestParquetRowWithoutAnImage checks that such a row is a BadSample, the error of one sample, and
// that others can be read.
func TestParquetRowWithoutAnImage(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, 0, 5)
	rows[2].Image.Bytes = nil
	p := openParquet(t, ParquetOptions{Paths: []string{parquetOf(t, rows, 5)}})
	_, err := p.At(t.Context(), 2, Frame{})
	if bad := (*BadSample)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), "test.parquet#2: the row has no image") {
		t.Errorf("a row without an image: %v", err)
	}
	if _, err := p.At(t.Context(), 3, Frame{}); err != nil {
		t.Error(err)
	}
}

// FuzzParquet checks that any bytes are an error or samples of which each can be read or is a
// BadSample.
func FuzzParquet(f *testing.F) {
	whole, err := os.ReadFile(parquetOf(f, rowsOf(f, 0, 3), 2, parquet.KeyValueMetadata("huggingface", classMetadata)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		p, err := OpenParquet(t.Context(), ParquetOptions{Paths: []string{path}})
		if err != nil {
			return
		}
		defer p.Close()
		for i := range p.Len() {
			if _, err := p.At(t.Context(), i, Frame{}); err != nil && !errors.As(err, new(*BadSample)) {
				t.Errorf("sample %d: %v", i, err)
			}
		}
	})
}
