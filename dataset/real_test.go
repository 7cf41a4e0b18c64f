package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
)

func TestImageNetOrder(t *testing.T) {
	t.Parallel()
	synsets, names := ImageNetSynsets(), ImageNetNames()
	if len(synsets) != 1000 || !slices.IsSorted(synsets) || len(slices.Compact(slices.Clone(synsets))) != 1000 {
		t.Fatalf("%d synsets; want 1,000, sorted and distinct", len(synsets))
	}
	for _, s := range synsets {
		if synsetOf(s) != s {
			t.Errorf("%q is no synset", s)
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

func TestImageNetSamples(t *testing.T) {
	t.Parallel()
	src, err := OpenFolder(t.Context(), FolderOptions{Dir: testdata.Path(t, "imagenet-samples")})
	if err != nil {
		t.Fatal(err)
	}
	to, err := MatchClasses(src.Classes(), ImageNetSynsets())
	if err != nil {
		t.Fatal(err)
	}
	mapped, keep, err := Restrict(src, to, ImageNetNames())
	if err != nil {
		t.Fatal(err)
	}
	if src.Len() != 200 || len(keep) != 200 {
		t.Fatalf("%d samples of %d classes, want 200 of 200", src.Len(), len(keep))
	}
	frame := Frame{Resize: 256, Height: 224, Width: 224, Channels: 3}
	for s, err := range Read(t.Context(), mapped, Indices(mapped.Len()), frame, ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		// Every fifth class, in order. The file is named n01440764_tench.JPEG.
		if keep[s.Label] != 5*s.Index {
			t.Errorf("%s is output %d, want %d", s.Name, keep[s.Label], 5*s.Index)
		}
		name := strings.ReplaceAll(strings.TrimSuffix(s.Name[10:], ".JPEG"), "_", " ")
		if !strings.EqualFold(name, mapped.Classes()[s.Label]) {
			t.Errorf("%s is called %s", s.Name, mapped.Classes()[s.Label])
		}
		if !slices.Equal(s.Input.Shape, []int{3, 224, 224}) || s.Input.FirstNonFinite() >= 0 {
			t.Errorf("%s: shape %v", s.Name, s.Input.Shape)
		}
	}
}
