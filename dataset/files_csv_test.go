package dataset

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
			unlisted := 6 - len(c.want)
			if notes := strings.Join(src.Notes(), "\n"); !strings.Contains(notes, fmt.Sprintf("left out %d files that labels.csv does not list: ", unlisted)) {
				t.Errorf("notes %q, want one on %d files", notes, unlisted)
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
