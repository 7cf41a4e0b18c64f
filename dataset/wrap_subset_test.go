package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// A labelledSource has the given labels, of which NoLabel is none. The image of a sample is one
// pixel, whose value is the index of the sample.
type labelledSource struct {
	labels  []int
	classes []string
	bad     map[int]error // what reading a sample returns, by its index
}

func (l labelledSource) Len() int            { return len(l.labels) }
func (l labelledSource) Classes() []string   { return l.classes }
func (l labelledSource) Factors() []string   { return nil }
func (l labelledSource) Fingerprint() string { return fmt.Sprint(l.labels) }
func (l labelledSource) At(ctx context.Context, i int, _ Frame) (Sample, error) {
	s := Sample{Index: i, Name: fmt.Sprintf("sample %d", i), Label: l.labels[i], Input: tensor.New(1, 1, 1)}
	s.Input.Data[0] = float32(i)
	return s, l.bad[i]
}

// sourceIndices returns the index of each sample in the original source. It checks that Describe
// and At agree.
func sourceIndices(t *rapid.T, src Source) []int {
	var all []int
	for i := range src.Len() {
		s, err := src.At(context.Background(), i, Frame{})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := Describe(context.Background(), src, i); err != nil || d.Index != s.Index || d.Label != s.Label || d.Input.Len() != 0 {
			t.Fatalf("described as %+v (%v), read as %+v", d, err, s)
		}
		if s.Input.Data[0] != float32(s.Index) {
			t.Fatalf("sample of index %d is image %v", s.Index, s.Input.Data[0])
		}
		all = append(all, s.Index)
	}
	return all
}

func drawnSource(t *rapid.T) labelledSource {
	return labelledSource{labels: rapid.SliceOfN(rapid.IntRange(NoLabel, 4), 1, 60).Draw(t, "labels"), classes: []string{"a", "b", "c", "d", "e"}}
}

// TestSplitPartitions checks that adjacent parts do not overlap, leave nothing out and keep the
// source's order, and that the classes are balanced in stratified parts.
func TestSplitPartitions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := drawnSource(t)
		parts := rapid.IntRange(1, 6).Draw(t, "parts")
		d := SplitOptions{Seed: rapid.Uint64().Draw(t, "seed"), Stratified: rapid.Bool().Draw(t, "stratified")}
		var all []int
		for p := range parts {
			part, err := Split(context.Background(), src, float64(p)/float64(parts), float64(p+1)/float64(parts), d)
			if err != nil {
				t.Fatal(err)
			}
			got := sourceIndices(t, part)
			if !slices.IsSorted(got) {
				t.Fatalf("part %d is out of order: %v", p, got)
			}
			if d.Stratified {
				checkBalance(t, src.labels, got, float64(len(got))/float64(src.Len()))
			}
			all = append(all, got...)
		}
		slices.Sort(all)
		if !slices.Equal(all, Indices(src.Len())) {
			t.Fatalf("the parts together are %v of %d", all, src.Len())
		}
	})
}

// checkBalance checks that got holds the given fraction of the samples of each class, up to two
// samples or the number of classes, whichever is larger. labels are the classes of all samples, and
// got are indices of samples.
func checkBalance(t *rapid.T, labels, got []int, fraction float64) {
	have, want := map[int]float64{}, map[int]float64{}
	for _, l := range labels {
		want[l] += fraction
	}
	for _, i := range got {
		have[labels[i]]++
	}
	for l := range want {
		// Classes of one sample each are together in the middle of the stratified order.
		if math.Abs(have[l]-want[l]) > max(2, float64(len(want))) {
			t.Fatalf("class %d has %v samples, want about %v", l, have[l], want[l])
		}
	}
}

func TestSubsets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := drawnSource(t)
		n := rapid.IntRange(0, 70).Draw(t, "n")
		limited := Limit(src, n)
		if got := sourceIndices(t, limited); !slices.Equal(got, Indices(min(n, src.Len()))) {
			t.Fatalf("the first %d are %v", n, got)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		shuffled := sourceIndices(t, Shuffle(src, seed))
		if again := sourceIndices(t, Shuffle(src, seed)); !slices.Equal(shuffled, again) {
			t.Fatalf("Shuffle with the same seed: %v and %v", shuffled, again)
		}
		sorted := slices.Sorted(slices.Values(shuffled))
		if !slices.Equal(sorted, Indices(src.Len())) {
			t.Fatalf("shuffled to %v", shuffled)
		}
		drawn, err := RandomSubset(context.Background(), src, n, SplitOptions{Seed: seed, Stratified: true})
		if err != nil || drawn.Len() != min(n, src.Len()) {
			t.Fatalf("%d drawn, want %d (%v)", drawn.Len(), n, err)
		}
		// Subsets of subsets keep the index of the source.
		half := Limit(Shuffle(src, seed), src.Len()/2)
		if got := sourceIndices(t, half); !slices.Equal(got, shuffled[:src.Len()/2]) {
			t.Fatalf("half of the shuffled is %v, want %v", got, shuffled[:src.Len()/2])
		}
	})
}

// A fingerprint is a hash of the samples of a source.
func TestSubsetFingerprints(t *testing.T) {
	t.Parallel()
	src := labelledSource{labels: make([]int, 20)}
	pick := func(indices ...int) Source {
		s, err := Subset(src, indices)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	seen := map[string]string{}
	for name, s := range map[string]Source{
		"whole": src, "limit 5": Limit(src, 5), "limit 6": Limit(src, 6), "shuffle 1": Shuffle(src, 1), "shuffle 2": Shuffle(src, 2),
		"12 3": pick(12, 3), "1 2 3": pick(1, 2, 3), "3 12": pick(3, 12),
	} {
		if other, taken := seen[s.Fingerprint()]; taken {
			t.Errorf("%s and %s have one fingerprint", name, other)
		}
		seen[s.Fingerprint()] = name
	}
	if Limit(src, 20).Fingerprint() != src.Fingerprint() {
		t.Error("a limit that leaves everything changes the fingerprint")
	}
	if _, err := Subset(src, []int{20}); err == nil {
		t.Error("an index beyond the end is accepted")
	}
	for _, interval := range [][2]float64{{-0.1, 1}, {0, 1.1}, {0.5, 0.5}, {math.NaN(), 1}} {
		if _, err := Split(t.Context(), src, interval[0], interval[1], SplitOptions{}); err == nil {
			t.Errorf("the interval %v is accepted", interval)
		}
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	outputs := []string{"ant", "bee", "cat", "dog", "eel", "fox"}
	src := labelledSource{labels: []int{0, 1, 2, NoLabel, 1}, classes: []string{"fox", "bee", "dog"}}
	// to holds, for each class of src, the output of a model that has its name.
	to, err := MatchClasses(src.Classes(), outputs)
	if err != nil || !slices.Equal(to, []int{5, 1, 3}) {
		t.Fatalf("classes match outputs %v, %v", to, err)
	}
	mapped, err := MapClasses(src, to, outputs)
	if err != nil {
		t.Fatal(err)
	}
	// Labels are indices of outputs in mapped. In restricted they are indices of keep, the outputs
	// that are classes of src.
	restricted, keep, err := Restrict(src, to, outputs)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(keep, []int{1, 3, 5}) || !slices.Equal(restricted.Classes(), []string{"bee", "dog", "fox"}) {
		t.Errorf("kept %v, called %v", keep, restricted.Classes())
	}
	for name, c := range map[string]struct {
		src  Source
		want []int
	}{
		"mapped":     {mapped, []int{5, 1, 3, NoLabel, 1}},
		"restricted": {restricted, []int{2, 0, 1, NoLabel, 0}},
		"limited":    {Limit(restricted, 2), []int{2, 0}},
	} {
		labels, err := sampleLabels(t.Context(), c.src)
		if err != nil || !slices.Equal(labels, c.want) {
			t.Errorf("%s: labels %v (%v), want %v", name, labels, err, c.want)
		}
		for i, want := range c.want {
			if s, err := c.src.At(t.Context(), i, Frame{}); err != nil || s.Label != want {
				t.Errorf("%s: sample %d is read with label %d (%v), want %d", name, i, s.Label, err, want)
			}
		}
	}
	if mapped.Fingerprint() == src.Fingerprint() || mapped.Fingerprint() == restricted.Fingerprint() {
		t.Error("sources with different labels have the same fingerprint")
	}
	// For a class that is not an output of the model, Restrict removes the samples' labels and the
	// output.
	partly, keep, err := Restrict(src, []int{NoLabel, 1, 3}, outputs)
	if labels, _ := sampleLabels(t.Context(), partly); err != nil || !slices.Equal(labels, []int{NoLabel, 0, 1, NoLabel, 0}) || len(keep) != 2 {
		t.Errorf("labels %v, kept %v, %v", labels, keep, err)
	}
}

func TestClassesErrors(t *testing.T) {
	t.Parallel()
	src := labelledSource{labels: []int{7}, classes: []string{"a", "b"}}
	if _, err := MatchClasses(src.classes, []string{"a", "c"}); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("error %v, want one that names b", err)
	}
	if _, err := MatchClasses(src.classes, []string{"a", "b", "a"}); err == nil || !strings.Contains(err.Error(), "two outputs") {
		t.Errorf("error %v, want one about the name used twice", err)
	}
	if _, err := MapClasses(src, []int{0}, []string{"x"}); err == nil || !strings.Contains(err.Error(), "for the 2 classes") {
		t.Errorf("error %v, want one about the number of classes", err)
	}
	if _, _, err := Restrict(src, []int{0, 9}, []string{"x", "y"}); err == nil || !strings.Contains(err.Error(), "output 9, and the model has 2") {
		t.Errorf("error %v, want one about the output", err)
	}
	mapped, err := MapClasses(src, []int{1, 0}, []string{"x", "y"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mapped.At(t.Context(), 0, Frame{}); err == nil || !strings.Contains(err.Error(), "sample 0: label 7 is outside the 2 classes") {
		t.Errorf("error %v, want one about the label", err)
	}
}

// TestPairs checks that Pair matches clean and transformed samples by name or by row. By "", two
// folders are matched by the names of their files without extension, and other sources by row.
func TestPairs(t *testing.T) {
	t.Parallel()
	open := func(dir string) Source {
		src, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	// dots makes images of one pixel, with the values 0, 1, 2 in the order of its arguments.
	clean, moved := open(dots(t, "x/a.png", "x/b.png", "y/c.png")), open(dots(t, "y/c.PNG", "x/b.png", "x/a.png"))
	byName, err := Pair(t.Context(), clean, moved, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float32{2, 1, 0} { // the pixel values of a, b, c in moved
		s, err := byName.At(t.Context(), i, Frame{})
		if err != nil || s.Input.Data[0] != float32(i)/255 || s.Transformed.Data[0] != want/255 || s.Label != i/2 {
			t.Errorf("pair %d is %+v, %v", i, s, err)
		}
	}
	byRow, err := Pair(t.Context(), labelledSource{labels: []int{1, 2}}, labelledSource{labels: []int{3, 4}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := byRow.At(t.Context(), 1, Frame{}); err != nil || s.Label != 2 || s.Transformed.Data[0] != 1 {
		t.Errorf("pair 1 is %+v, %v", s, err)
	}
	if d, err := Describe(t.Context(), Limit(byRow, 1), 0); err != nil || d.Label != 1 {
		t.Errorf("described as %+v, %v", d, err)
	}
	for want, pair := range map[string][2]Source{
		"clean sample y/c has no transformed sample":           {clean, open(dots(t, "x/a.png", "x/b.png"))},
		"no clean sample has the name of 1 transformed sample": {clean, open(dots(t, "x/a.png", "x/b.png", "y/c.png", "y/d.png"))},
		"are both called x/a":                                  {clean, open(dots(t, "x/a.png", "x/b.png", "y/c.png", "x/a.jpg"))},
		"3 clean and 2 transformed samples":                    {clean, labelledSource{labels: []int{0, 0}}},
	} {
		if _, err := Pair(t.Context(), pair[0], pair[1], ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := Pair(t.Context(), clean, moved, "size"); err == nil {
		t.Error("matching by \"size\" is accepted")
	}
	scene, err := os.ReadFile("testdata/images/scene.png")
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := Pair(t.Context(), open(dots(t, "a.png")), open(folderOf(t, map[string][]byte{"a.png": scene})), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sizes.At(t.Context(), 0, Frame{}); !errors.As(err, new(*BadSample)) {
		t.Errorf("error %v, want a bad sample: the images of the pair differ in size", err)
	}
	if s, err := sizes.At(t.Context(), 0, Frame{Height: 4, Width: 4, Channels: 3}); err != nil || s.Transformed.Len() != s.Input.Len() {
		t.Errorf("images of a pair, resized to the same size: %v", err)
	}
}

func TestCloseClosesWrappedSources(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test_batch.bin")
	cifarFileOf(t, path, 4, 1, 0) // 4 samples, one byte of label each, from label 0
	file, err := OpenCIFAR10(t.Context(), CIFAROptions{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	// The file has four images.
	array, err := OpenArrays(t.Context(), ArraysOptions{Images: arrayFile("stored.npz")})
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := MapClasses(file, Indices(10), file.Classes())
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := Pair(t.Context(), Shuffle(mapped, 1), Limit(array, 4), "row")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pairs.At(t.Context(), 0, Frame{Height: 8, Width: 8}); err != nil {
		t.Fatal(err)
	}
	if err := Close(Limit(pairs, 2)); err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string]Source{"cifar": file, "arrays": array} {
		if _, err := src.At(t.Context(), 0, Frame{}); err == nil {
			t.Errorf("%s is read after it was closed", name)
		}
	}
	if err := Close(labelledSource{}); err != nil {
		t.Error(err)
	}
}
