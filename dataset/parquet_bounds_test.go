package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A sharedRow holds an image that all rows share: the file has it once, in a dictionary.
type sharedRow struct {
	Image []byte  `parquet:"image,dict"`
	Label string  `parquet:"label,dict"`
	Angle float64 `parquet:"angle,dict"`
}

// TestParquetDictionaryBomb checks that rows that share an image and a label share their memory: a
// copy for each row would take 1.3 GB for images and 0.2 GB for labels.
func TestParquetDictionaryBomb(t *testing.T) {
	t.Parallel()
	image := append(dot(t, 7), make([]byte, 64<<10)...)
	label := strings.Repeat("x", 10_000)
	path := parquetOf(t, slices.Repeat([]sharedRow{{image, label, 1}}, 20_000), 20_000, parquet.PageBufferSize(1<<20))
	p := openParquet(t, ParquetOptions{Paths: []string{path}})
	if _, err := p.At(t.Context(), p.Len()-1, Frame{}); err != nil {
		t.Fatal(err)
	}
	if got := p.pages[0].size; got != len(image) || p.Len() != 20_000 {
		t.Errorf("a page of one image takes %d bytes and the file has %d rows; want %d and 20,000", got, p.Len(), len(image))
	}
}

// TestEqualNumbersOfParquet checks that an array of equal numbers is no bomb, and is read across
// blocks of memory.
func TestEqualNumbersOfParquet(t *testing.T) {
	t.Parallel()
	type number struct {
		X float64 `parquet:"x,dict"`
	}
	path := parquetOf(t, slices.Repeat([]number{{2.5}}, 3<<20), 1<<20, parquet.PageBufferSize(1<<20))
	x, err := OpenArrayFile(t.Context(), path, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	got := make([]float64, 2)
	if err := x.Rows([]int{0, 3<<20 - 1}, got); err != nil || got[0] != 2.5 || got[1] != 2.5 {
		t.Errorf("the values are %v, error %v; want 2.5", got, err)
	}
}
