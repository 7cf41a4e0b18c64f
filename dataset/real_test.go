package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
)

// imageNetNames returns the names of the outputs of an ImageNet classifier, in order.
func imageNetNames() (names []string) {
	for line := range strings.Lines(imagenetList) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		names = append(names, name)
	}
	return names
}

// TestImageNetOrder checks that the WordNet synsets (identifiers such as n01440764) and the names
// of classes are in the order of the outputs of ImageNet classifiers.
func TestImageNetOrder(t *testing.T) {
	t.Parallel()
	synsets, names := ImageNetSynsets(), imageNetNames()
	if len(synsets) != 1000 || !slices.IsSorted(synsets) || len(slices.Compact(slices.Clone(synsets))) != 1000 {
		t.Fatalf("%d synsets; want 1,000, sorted and distinct", len(synsets))
	}
	for _, s := range synsets {
		if synsetOf(s) != s {
			t.Errorf("%q is not the identifier of a synset", s)
		}
	}
	// Classes with known numbers, some with similar names.
	for i, want := range map[int]string{
		0: "n01440764 tench", 134: "n02012849 crane bird", 281: "n02123045 tabby", 517: "n03126707 crane",
		638: "n03710637 maillot", 639: "n03710721 maillot tank suit", 999: "n15075141 toilet tissue",
	} {
		if got := synsets[i] + " " + names[i]; got != want {
			t.Errorf("output %d is %s, want %s", i, got, want)
		}
	}
}

// The data are 200 photographs, one of every fifth ImageNet class. Their file names give their
// classes.
func TestImageNetSamples(t *testing.T) {
	t.Parallel()
	src, err := OpenFolder(t.Context(), FolderOptions{Dir: testdata.Path(t, "imagenet-samples")})
	if err != nil {
		t.Fatal(err)
	}
	// to has the output of each class. Restrict turns labels into indices into keep, the outputs of
	// the classes that the data have.
	to, err := MatchClasses(src.Classes(), ImageNetSynsets())
	if err != nil {
		t.Fatal(err)
	}
	mapped, keep, err := Restrict(src, to, imageNetNames())
	if err != nil {
		t.Fatal(err)
	}
	if src.Len() != 200 || len(keep) != 200 {
		t.Fatalf("%d samples of %d classes, want 200 of 200", src.Len(), len(keep))
	}
	frame := Frame{Resize: 256, Height: 224, Width: 224, Channels: 3} // a crop of 224 x 224
	for s, err := range Read(t.Context(), mapped, Indices(mapped.Len()), frame, ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		// The first file is named n01440764_tench.JPEG.
		if keep[s.Label] != 5*s.Index {
			t.Errorf("%s is output %d, want %d", s.Name, keep[s.Label], 5*s.Index)
		}
		name := strings.ReplaceAll(strings.TrimSuffix(s.Name[len("n01440764_"):], ".JPEG"), "_", " ")
		if !strings.EqualFold(name, mapped.Classes()[s.Label]) {
			t.Errorf("%s is called %s", s.Name, mapped.Classes()[s.Label])
		}
		if !slices.Equal(s.Input.Shape, []int{3, 224, 224}) || s.Input.FirstNonFinite() >= 0 {
			t.Errorf("%s: shape %v", s.Name, s.Input.Shape)
		}
	}
}

// The same photographs in a folder, in shards (tar files as of WebDataset, with the label in .cls)
// and in Parquet are the same samples.
func TestFolderShardsAndParquetAgree(t *testing.T) {
	t.Parallel()
	dir := testdata.Path(t, "imagenet-samples")
	folder, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	const n = 6
	var shards []string
	var rows []huggingFaceRow
	for i := range n {
		s := folder.Describe(i)
		data, err := os.ReadFile(filepath.Join(dir, s.Name))
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, shard(t, fmt.Sprintf("%d.tar", i), member{s.Name, data}, member{strings.TrimSuffix(s.Name, ".JPEG") + ".cls", fmt.Append(nil, s.Label)}))
		label := int64(s.Label)
		row := huggingFaceRow{Label: &label}
		row.Image.Bytes = data
		rows = append(rows, row)
	}
	// parquetOf writes the rows into a file, 4 in a row group.
	sources := []Source{openShards(t, ShardsOptions{Paths: shards}), openParquet(t, ParquetOptions{Paths: []string{parquetOf(t, rows, 4)}})}
	frame := Frame{Channels: 3, Height: 224, Width: 224, Resize: 256}
	for i := range n {
		want, err := folder.At(t.Context(), i, frame)
		if err != nil {
			t.Fatal(err)
		}
		for _, src := range sources {
			got, err := src.At(t.Context(), i, frame)
			if err != nil || got.Label != want.Label || !slices.Equal(got.Input.Data, want.Input.Data) {
				t.Errorf("%T: image %d differs from the file's (label %d and %d, %v)", src, i, got.Label, want.Label, err)
			}
		}
	}
}
