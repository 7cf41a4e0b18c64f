package dataset

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dot returns a PNG of one grey pixel.
func dot(t testing.TB, level uint8) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 1, 1))
	img.SetGray(0, 0, color.Gray{Y: level})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// dots writes a folder of images of one grey pixel, whose value is the index of the image's name,
// and returns its path.
func dots(t testing.TB, names ...string) string {
	t.Helper()
	files := map[string][]byte{}
	for i, n := range names {
		files[n] = dot(t, uint8(i))
	}
	return folderOf(t, files)
}

// listing returns "name label" for each sample, read with At, and "name -" for one without a label.
func listing(t *testing.T, src Source) []string {
	t.Helper()
	var lines []string
	for i := range src.Len() {
		s, err := src.At(t.Context(), i, Frame{}) // Frame{}: not resized
		if err != nil {
			t.Fatal(err)
		}
		if s.Index != i {
			t.Errorf("sample %d has index %d", i, s.Index)
		}
		label := "-"
		if s.Label != NoLabel {
			label = src.Classes()[s.Label]
		}
		lines = append(lines, s.Name+" "+label)
	}
	return lines
}

// TestFolderLayouts checks samples and classes in each layout: classes (a folder for each class),
// synsets (classes from file names) and flat (no labels). Without a layout, the files decide. Names
// that start with a dot are ignored.
func TestFolderLayouts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		files  []string
		layout string
		want   []string
	}{
		{"flat", []string{"b.png", "a.PNG", "notes.txt", ".hidden.png"}, "", []string{"a.PNG -", "b.png -"}},
		{"nested as flat", []string{"b.png", "x/a.png"}, "flat", []string{"b.png -", "x/a.png -"}},
		{"a folder for each class", []string{"dog/2.png", "dog/1.png", "cat/3.png", "empty/readme.md", ".git/x.png"}, "",
			[]string{"cat/3.png cat", "dog/1.png dog", "dog/2.png dog"}},
		{"deep", []string{"dog/young/1.png", "dog/old/2.png", "dog/3.png", "cat/a/b/c.png"}, "",
			[]string{"cat/a/b/c.png cat", "dog/3.png dog", "dog/old/2.png dog", "dog/young/1.png dog"}},
		// A synset is a category of WordNet, such as n01443537 for goldfish. ImageNet's classes are
		// synsets.
		{"ImageNet", []string{"n01443537/n01443537_1.JPEG", "n01440764/n01440764_7.JPEG"}, "",
			[]string{"n01440764/n01440764_7.JPEG n01440764", "n01443537/n01443537_1.JPEG n01443537"}},
		{"synsets", []string{"n01443537_goldfish.png", "n01440764_tench.png", "n01440764-2.png"}, "",
			[]string{"n01440764-2.png n01440764", "n01440764_tench.png n01440764", "n01443537_goldfish.png n01443537"}},
		{"an archive of macOS", []string{"dog/1.png", "cat/2.png", "__MACOSX/dog/._1.png", "__MACOSX/other.png"}, "", []string{"cat/2.png cat", "dog/1.png dog"}},
		{"one class with folders", []string{"dog/young/1.png", "dog/old/2.png", "dog/3.png"}, "", []string{"dog/3.png dog", "dog/old/2.png dog", "dog/young/1.png dog"}},
		{"stated parts", []string{"train/1.png", "test/2.png"}, "classes", []string{"test/2.png test", "train/1.png train"}},
		{"nearly synsets", []string{"n01443537_goldfish.png", "n014407641.png"}, "", []string{"n014407641.png -", "n01443537_goldfish.png -"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			src, err := OpenFolder(t.Context(), FolderOptions{Dir: dots(t, c.files...), Layout: c.layout})
			if err != nil {
				t.Fatal(err)
			}
			if got := listing(t, src); !slices.Equal(got, c.want) {
				t.Errorf("samples %q, want %q", got, c.want)
			}
		})
	}
	src, err := OpenFolder(t.Context(), FolderOptions{Dir: dots(t, "b/1.png", "a/readme.md")})
	if err != nil || !slices.Equal(src.Classes(), []string{"a", "b"}) {
		t.Errorf("classes %v (%v), want [a b]: a folder without images is a class too", src.Classes(), err)
	}
}

// TestFoldersThatAreNoClasses checks that the parts of a data set, and the folder above those of the
// classes, are not taken for classes, with a note.
func TestFoldersThatAreNoClasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want  string
		files []string
	}{
		{"the folders (test, train) are parts of a data set and no classes", []string{"train/dog/1.png", "train/cat/2.png", "test/dog/3.png"}},
		{"the folders (Validation) are parts", []string{"Validation/1.png"}},
		{"the folders (val2017) are parts", []string{"val2017/1.png", "val2017/2.png"}},
		{"all images are in folders of photos (cat, dog), so they have no labels: name that folder", []string{"photos/dog/1.png", "photos/cat/2.png"}},
	} {
		src, err := OpenFolder(t.Context(), FolderOptions{Dir: dots(t, c.files...)})
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(src.Notes(), "\n"); !strings.Contains(notes, c.want) || len(src.Classes()) != 0 || src.Describe(0).Label != NoLabel {
			t.Errorf("%v: classes %q, notes %q; want none and %q", c.files, src.Classes(), notes, c.want)
		}
	}
}

func TestFolderFollowsLinks(t *testing.T) {
	t.Parallel()
	real, dir := dots(t, "1.png", "2.png"), t.TempDir()
	if err := os.Symlink(real, filepath.Join(dir, "linked")); err != nil {
		t.Skipf("symbolic links cannot be made here: %v", err)
	}
	src, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
	if err != nil || src.Len() != 2 || src.Classes()[0] != "linked" {
		t.Fatalf("a folder with a link to two images: %+v, %v", src, err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
		t.Skipf("symbolic links cannot be made here: %v", err)
	}
	if _, err := OpenFolder(t.Context(), FolderOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), "link to a parent folder") {
		t.Errorf("error %v, want one about the loop", err)
	}
}

// TestOpenFolderErrors checks the errors of folders, and of tables of labels, csv, if one is given.
func TestOpenFolderErrors(t *testing.T) {
	t.Parallel()
	// mixed has an image inside and one outside a subfolder.
	mixed, empty := dots(t, "a.png", "dog/b.png"), t.TempDir()
	validation := dots(t, "ILSVRC2012_val_00000003.JPEG")
	cases := []struct {
		name    string
		options FolderOptions
		csv     string
		want    string
	}{
		{"missing", FolderOptions{Dir: filepath.Join(empty, "none")}, "", "no such file"},
		{"empty", FolderOptions{Dir: empty}, "", "no images"},
		{"mixed", FolderOptions{Dir: mixed}, "", "set the layout"},
		{"outside the classes", FolderOptions{Dir: mixed, Layout: "classes"}, "", "a.png is outside"},
		{"no synset", FolderOptions{Dir: mixed, Layout: "synsets"}, "", "does not start with a synset"},
		{"layout", FolderOptions{Dir: mixed, Layout: "deep"}, "", "unknown layout"},
		{"both", FolderOptions{Dir: mixed, Layout: "flat"}, "a.png,1\n", "not from both"},
		{"listed but missing", FolderOptions{Dir: mixed}, "file,label\na.png,1\nz.png,1\n", "line 3"},
		{"twice", FolderOptions{Dir: mixed}, "a.png,1\ndog/../a.png,2\n", "line 2: a.png is already in line 1"},
		{"outside", FolderOptions{Dir: mixed}, "../a.png,1\n", "inside it"},
		{"columns", FolderOptions{Dir: mixed}, "name,label\na.png,1\n", "no column file"},
		{"no header for factors", FolderOptions{Dir: mixed}, "a.png,1,2\n", "no header"},
		{"factor", FolderOptions{Dir: mixed}, "file,label,hue\na.png,1,3\ndog/b.png,1,red\n", `line 3: factor hue is "red"`},
		{"ragged", FolderOptions{Dir: mixed}, "file,label\na.png\n", "line 2"},
		{"no rows", FolderOptions{Dir: mixed}, "file,label\n", "no rows"},
		{"two labels", FolderOptions{Dir: mixed}, "file,label,class\na.png,1,2\n", "both name the label"},
		{"a folder", FolderOptions{Dir: mixed}, "file,label\ndog,1\n", "dog is a folder"},
		{"labels alone", FolderOptions{Dir: mixed}, "490\n361\n", "line 1: a label without a file"},
		{"no class of the challenge", FolderOptions{Dir: validation}, "490\n361\n1001\n", `line 3: "1001" is not the number of a class`},
		{"too few labels", FolderOptions{Dir: validation}, "490\n", "it has 1 lines, and the label of ILSVRC2012_val_00000003.JPEG would be in line 3"},
		{"white space, then none", FolderOptions{Dir: mixed}, "a.png 1\n2\n", `line 2: "2" is not a file name`},
		{"white space, then a comma", FolderOptions{Dir: mixed}, "a.png 1\nb.png,2\n", "line 2"},
		{"a line too long", FolderOptions{Dir: mixed}, "a.png 1\n" + strings.Repeat("x", 1<<17), "token too long"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.csv != "" {
				c.options.Labels = filepath.Join(t.TempDir(), "labels.csv")
				if err := os.WriteFile(c.options.Labels, []byte(c.csv), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := OpenFolder(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want a line with %q", err, c.want)
			}
		})
	}
}

// TestFolderFingerprint checks that the fingerprint (a hash of the samples) changes with files,
// names and labels, and not with the folder's path.
func TestFolderFingerprint(t *testing.T) {
	t.Parallel()
	fingerprint := func(files map[string][]byte) string {
		src, err := OpenFolder(t.Context(), FolderOptions{Dir: folderOf(t, files)})
		if err != nil {
			t.Fatal(err)
		}
		return src.Fingerprint()
	}
	one, other := dot(t, 1), dot(t, 2)
	if len(one) != len(other) {
		t.Fatal("the two images must have the same size")
	}
	base := fingerprint(map[string][]byte{"x/a.png": one, "y/b.png": other})
	if again := fingerprint(map[string][]byte{"x/a.png": one, "y/b.png": other}); again != base {
		t.Error("the same files in another folder have another fingerprint")
	}
	for name, files := range map[string]map[string][]byte{
		"contents exchanged": {"x/a.png": other, "y/b.png": one},
		"renamed":            {"x/c.png": one, "y/b.png": other},
		"another label":      {"x/a.png": one, "x/b.png": other, "y/readme.md": nil},
		"one file more":      {"x/a.png": one, "y/b.png": other, "y/c.png": other},
	} {
		if fingerprint(files) == base {
			t.Errorf("%s: the fingerprint is the same", name)
		}
	}
}

// TestFolderBadSample checks that an image that cannot be read, since it is truncated or a text, is
// a BadSample, the error of one sample, and that a wrong index is not.
func TestFolderBadSample(t *testing.T) {
	t.Parallel()
	good := dot(t, 9)
	dir := folderOf(t, map[string][]byte{"a.png": good, "b.png": good[:len(good)-20], "c.jpg": []byte("no image")})
	src, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "b.png: damaged png", "c.jpg: unknown image format"} {
		s, err := src.At(t.Context(), i, Frame{})
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		var bad *BadSample
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want a bad sample with %q", err, want)
		}
		if s.Index != i || s.Name == "" {
			t.Errorf("the sample beside the error is %+v", s)
		}
	}
	if _, err := src.At(t.Context(), 3, Frame{}); err == nil || errors.As(err, new(*BadSample)) {
		t.Errorf("error %v for a sample that is not there", err)
	}
}

// TestDecodeRejectsBombs tries a decompression bomb: it checks that a short file whose header
// declares an image of many gigabytes is rejected.
func TestDecodeRejectsBombs(t *testing.T) {
	t.Parallel()
	bomb := append([]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), make([]byte, 8)...)
	if _, err := decodeImage(bomb); err == nil || !strings.Contains(err.Error(), "65535 x 65535 pixels") {
		t.Errorf("error %v, want one about the size", err)
	}
}

// FuzzDecode checks that any bytes are an error or an image that a Frame (size and channels of a
// model's input) brings to its size.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"420.jpg", "progressive.jpg", "alpha.png", "palette.gif", "colour.bmp", "colour.tif", "lossy.webp", "lossless.webp", "cmyk.jpg",
		"frame-smaller.gif", "group4-black.tif", "orientation-6.tif", "animated.webp", "deep.png"} {
		data, err := os.ReadFile(filepath.Join("testdata", "images", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := decodeImage(data)
		if err != nil {
			return
		}
		out, err := Frame{Height: 4, Width: 4, Channels: 3}.Image(img)
		if err == nil && (len(out.Data) != 3*4*4 || out.FirstNonFinite() >= 0) {
			t.Errorf("the image in a frame of 3 x 4 x 4 is %v", out)
		}
	})
}

// Links to files that do not exist are left out. Notes, which says what was left out, names them.
func TestDanglingLinks(t *testing.T) {
	t.Parallel()
	dir := dots(t, "a.png")
	for _, name := range []string{"b.png", "c.png"} {
		if err := os.Symlink(filepath.Join(dir, "gone.png"), filepath.Join(dir, name)); err != nil {
			t.Skipf("symbolic links cannot be made here: %v", err)
		}
	}
	f, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
	if err != nil || f.Len() != 1 {
		t.Fatalf("%d images, %v", f.Len(), err)
	}
	want := "left out links to files that do not exist: b.png, c.png"
	if got := Notes(f); len(got) != 1 || got[0] != want {
		t.Errorf("the notes are %q, want %q", got, want)
	}
}

// Files of formats that are not read are named with their number, in a folder that has images and
// in one that has none, and so are recordings.
func TestOtherFormatsAreNamed(t *testing.T) {
	t.Parallel()
	dir := dots(t, "a.png")
	for _, name := range []string{"b.ppm", "c.HEIC", "d.ppm", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("P6 1 1 255 abc"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := "left out 3 files of formats that are not read (.heic, .ppm): b.ppm, c.HEIC, d.ppm"
	f, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
	if err != nil || f.Len() != 1 {
		t.Fatalf("%d images, %v", f.Len(), err)
	}
	if got := Notes(f); len(got) != 1 || got[0] != want {
		t.Errorf("the notes are %q, want %q", got, want)
	}
	if err := os.Remove(filepath.Join(dir, "a.png")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(t.Context(), FolderOptions{Dir: dir}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("a folder without images: error %v, want one that ends in %q", err, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "e.mp3"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want = "left out 1 file of formats that are not read (.mp3): e.mp3"
	if _, err := OpenAudio(t.Context(), AudioOptions{Dir: dir}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("a folder without recordings: error %v, want one that ends in %q", err, want)
	}
}
