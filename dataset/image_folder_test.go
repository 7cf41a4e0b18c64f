package dataset

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// TestFolderWithCSV checks labels and factors from a table of files.
func TestFolderWithCSV(t *testing.T) {
	t.Parallel()
	dir := dots(t, "a.png", "sub/b.png", "c.png", "unlisted.png", "sub/d e.png", "sub/f.JPEG")
	cases := []struct {
		name, csv string
		want      []string
		factors   []string
	}{
		{"names", "file,label\nc.png,dog\nsub/b.png,cat\na.png,dog\n", []string{"c.png dog", "sub/b.png cat", "a.png dog"}, nil},
		{"numbers", "file,label\na.png,3\nc.png,0\n", []string{"a.png 3", "c.png 0"}, nil},
		{"no header", "c.png,dog\na.png,cat\n", []string{"c.png dog", "a.png cat"}, nil},
		{"files alone", "c.png\na.png\n", []string{"c.png -", "a.png -"}, nil},
		{"some without label", "file,label\nc.png,\na.png,cat\n", []string{"c.png -", "a.png cat"}, nil},
		{"factors", "size,filename,class,hue\n1.5,c.png,x,-20\n2,a.png,x,30\n", []string{"c.png x", "a.png x"}, []string{"hue", "size"}},
		{"white space", "c.png 3\nsub/b.png \t0\n\na.png -1\r\n", []string{"c.png 3", "sub/b.png 0", "a.png -"}, nil},
		{"a name with spaces", "sub/d e.png dog\na.png cat\n", []string{"sub/d e.png dog", "a.png cat"}, nil},
		// ImageNet's LOC_val_solution.csv from Kaggle: names without extensions, then synsets with
		// boxes.
		{"Kaggle", "ImageId,PredictionString\nsub/f,n01440764 1 2 3 4 n01443537 5 6 7 8 \n", []string{"sub/f.JPEG n01440764"}, nil},
		// Spreadsheets start a UTF-8 file with a byte order mark, \xef\xbb\xbf.
		{"spreadsheet", "\xef\xbb\xbffile, label\r\n\"c.png\", \"a, b\"\r\n", []string{"c.png a, b"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			table := filepath.Join(t.TempDir(), "labels.csv")
			if err := os.WriteFile(table, []byte(c.csv), 0o600); err != nil {
				t.Fatal(err)
			}
			src, err := OpenFolder(t.Context(), FolderOptions{Dir: dir, Labels: table})
			if err != nil {
				t.Fatal(err)
			}
			if got := listing(t, src); !slices.Equal(got, c.want) {
				t.Errorf("samples %q, want %q", got, c.want)
			}
			if !slices.Equal(src.Factors(), c.factors) {
				t.Errorf("factors %q, want %q", src.Factors(), c.factors)
			}
			if c.factors != nil {
				if f := src.Describe(0).Factors; f["hue"] != -20 || f["size"] != 1.5 {
					t.Errorf("factors of c.png are %v", f)
				}
			}
		})
	}
}

// TestTablesOfPandas checks labels that pandas wrote as floats, its column without a name, and
// factors that some rows lack.
func TestTablesOfPandas(t *testing.T) {
	t.Parallel()
	dir := dots(t, "a.png", "b.png", "c.png", "d.png")
	open := func(text string) (*Folder, error) {
		return OpenFolder(t.Context(), FolderOptions{Dir: dir, Labels: writeText(t, filepath.Join(t.TempDir(), "labels.csv"), text)})
	}
	src, err := open(",file,label,hue,remark,depth\n0,a.png,3.0,1.5,,1\n1,b.png,,2,blurred,nan\n2,c.png,1.000000000000000000e+00,3,,2\n3,d.png,NaN,4,,3\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{3, NoLabel, 1, NoLabel} {
		if got := src.Describe(i); got.Label != want || len(got.Factors) != 1 {
			t.Errorf("sample %d has the label %d and factors %v, want the label %d and hue alone", i, got.Label, got.Factors, want)
		}
	}
	if len(src.Classes()) != 4 || !slices.Equal(src.Factors(), []string{"hue"}) {
		t.Errorf("classes %q and factors %q", src.Classes(), src.Factors())
	}
	if notes := strings.Join(src.Notes(), "\n"); !strings.Contains(notes, "left out the factor remark") || !strings.Contains(notes, "line 3 has no value") {
		t.Errorf("notes %q", notes)
	}
	_, err = open("file,label\na.png,3.0\nb.png,3.5\n")
	wantErrorContaining(t, err, `label "3.5" is not a whole number`)
	if src, err = open("file,label\na.png,3.0\nb.png,cat\n"); err != nil || !slices.Equal(src.Classes(), []string{"3.0", "cat"}) {
		t.Errorf("%v: names and numbers together are names", err)
	}
}

// TestChallengeLabels labels a part of ImageNet's validation images by the class numbers in the
// development kit of the ImageNet challenge of 2012. The numbers of the first ten images are those
// of the published file.
func TestChallengeLabels(t *testing.T) {
	t.Parallel()
	dir := dots(t, "ILSVRC2012_val_00000001.JPEG", "sub/ILSVRC2012_val_00000010.JPEG", "ILSVRC2012_val_00000003.JPEG")
	numbers := writeText(t, filepath.Join(t.TempDir(), "ILSVRC2012_validation_ground_truth.txt"), "490\n361\n171\n822\n297\n482\n13\n704\n599\n164\n")
	src, err := OpenFolder(t.Context(), FolderOptions{Dir: dir, Labels: numbers})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ILSVRC2012_val_00000001.JPEG n01751748", "ILSVRC2012_val_00000003.JPEG n02105855", "sub/ILSVRC2012_val_00000010.JPEG n02328150"}
	if got := listing(t, src); !slices.Equal(got, want) {
		t.Errorf("samples %q, want %q", got, want)
	}
	// challengeList has the synset of each number of the challenge.
	if got, want := slices.Sorted(slices.Values(strings.Fields(challengeList))), ImageNetSynsets(); !slices.Equal(got, want) {
		t.Error("the classes of the challenge are not the synsets of ImageNet")
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

// TestOtherTables checks that a file of labels that is no CSV is an error that says what it is.
func TestOtherTables(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a.png;3\n": `separated by ";"`, "file;label;size,px\na.png;3;1,5\n": `separated by ";"`, "a.png|cat\n": `separated by "|"`, "a;b.tar;3\n": "no column file",
		"f\x00i\x00l\x00e\x00": "UTF-16", "file,label\ra.png,3\r": "carriage returns",
		`{"a.png": 3}`: "JSON", "\n[{\"file\": \"a.png\"}]": "JSON", "\xff\xfef\x00i\x00": "UTF-16", "PK\x03\x04\x14": "spreadsheet",
		"file;label\na.png;3\n": `separated by ";"`, "label\t\"Path\"\n3\ta.png\n": `separated by "\t"`, "id;class\n1;2\n": "no column file",
	} {
		_, err := readLabelTable(strings.NewReader(text), "", (&fileList{extensions: imageExtensions}).hasExtension)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %s", text, err, want)
		}
	}
}

// TestMissingLabels checks that a text for a missing number is no class among numbers.
func TestMissingLabels(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"", "nan", "NaN", "NA", "N/A", "<NA>", "null", "None"} {
		labels, _, err := labelsOf([]string{"10.0", missing, "2"})
		if err != nil || !slices.Equal(labels, []int{10, NoLabel, 2}) {
			t.Errorf("10.0, %q and 2 are %v, error %v", missing, labels, err)
		}
	}
	if labels, classes, err := labelsOf([]string{"none", "hat"}); err != nil || !slices.Equal(labels, []int{1, 0}) || len(classes) != 2 {
		t.Errorf("none and hat are %v of %q, error %v", labels, classes, err)
	}
}

// TestNumbersThatAreNoLabels checks that labels that are all numbers, of which one is the number of
// no class, are an error, and are not sorted as names.
func TestNumbersThatAreNoLabels(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"-100", "-2", "-100.0", "2.5", "inf", "-Infinity", "10000001", "1e-09"} {
		if labels, classes, err := labelsOf([]string{"10", wrong, "2"}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("10, %s and 2 are %v of %q, error %v", wrong, labels, classes, err)
		}
	}
	if labels, _, err := labelsOf([]string{"10000002", "10000001"}); err != nil || !slices.Equal(labels, []int{1, 0}) {
		t.Errorf("identifiers are %v, error %v", labels, err)
	}
	for _, wrong := range []string{"3\x00", "caf\xe9"} { // of UTF-16 and Latin 1
		if _, _, err := labelsOf([]string{wrong, "4"}); err == nil || !strings.Contains(err.Error(), "is not UTF-8") {
			t.Errorf("label %q: error %v", wrong, err)
		}
	}
}

// FuzzLabelTable checks that any table of labels is an error, or has a valid label, a file inside
// the folder and all factors in each row.
func FuzzLabelTable(f *testing.F) {
	f.Add("file,label,hue\na.png,3,1e3\nb.png,,-2\n")
	f.Add("\xef\xbb\xbfa.png,cat\nb.png,dog\n")
	f.Add("path,class\n\"x\"\"y.png\",\"a,b\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := readLabelTable(strings.NewReader(text), "", (&fileList{extensions: imageExtensions}).hasExtension)
		if err != nil {
			return
		}
		var texts []string
		for _, row := range table.rows {
			texts = append(texts, row.label)
		}
		labels, classes, err := labelsOf(texts)
		if err != nil {
			return
		}
		if len(labels) != len(table.rows) || len(labels) == 0 {
			t.Fatalf("%d labels for %d rows", len(labels), len(table.rows))
		}
		for i, l := range labels {
			text := table.rows[i].label
			number, err := strconv.ParseFloat(text, 64)
			none := slices.Contains(missingLabels, strings.ToLower(text)) || (err == nil && (number == NoLabel || math.IsNaN(number)))
			if l < NoLabel || l >= len(classes) || (l == NoLabel && !none) || (l != NoLabel && text == "") {
				t.Fatalf("label %q is %d of %d classes", text, l, len(classes))
			}
			if len(table.rows[i].factors) != len(table.factors) || !filepath.IsLocal(table.rows[i].file) {
				t.Fatalf("row %+v", table.rows[i])
			}
		}
	})
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
