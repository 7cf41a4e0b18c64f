package dataset

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestParquetOfArrow reads Parquet files that the writer of Apache Arrow has made, with each of its
// encodings, compressions and data page versions, in order and in a random order.
// testdata/parquet/main.go made them, all with the same 60 rows: row i has an image whose pixels
// are i, the label i mod 3 and, as a factor (a known property of the sample), the angle i / 2; row
// 7 has no image, which is a BadSample, the error of one sample.
func TestParquetOfArrow(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "parquet", "*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openParquet(t, ParquetOptions{Paths: []string{file}})
			if p.Len() != 60 || !slices.Equal(p.Classes(), []string{"cat", "dog", "owl"}) || !slices.Equal(p.Factors(), []string{"angle"}) {
				t.Fatalf("%d samples, classes %q, factors %q", p.Len(), p.Classes(), p.Factors())
			}
			order := rand.New(rand.NewPCG(1, 2)).Perm(p.Len())
			for i := range p.Len() {
				for _, i := range []int{i, order[i]} {
					s, err := p.At(t.Context(), i, Frame{})
					if bad := (*BadSample)(nil); i == 7 {
						if !errors.As(err, &bad) || !strings.Contains(err.Error(), "#7: the row has no image") {
							t.Errorf("row 7, which has no image: error %v", err)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					if s.Input.Data[0] != float32(i)/255 || s.Label != i%3 || s.Factors["angle"] != float64(i)/2 || s.Name != fmt.Sprintf("%s#%d", name, i) {
						t.Fatalf("sample %d is %+v", i, s)
					}
				}
			}
		})
	}
}
