package dataset

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A member is a file in a shard, which is a tar file of samples (see the WebDataset format).
type member struct {
	name string
	data []byte
}

// shard writes a tar of members into a new folder and returns its path.
func shard(t testing.TB, name string, members ...member) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, shardBytes(t, members...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// shardBytes returns a tar of members.
func shardBytes(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Size: int64(len(m.data)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(m.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// openShards opens shards as one source of samples.
func openShards(t testing.TB, o ShardsOptions) *Shards {
	t.Helper()
	s, err := OpenShards(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWebDatasetShards checks shards as WebDataset writes them. The members of a sample (image,
// label in .cls, other properties in .json) share a name up to the first dot. dot returns a PNG of
// one pixel, and listing the name and the class of each sample.
func TestWebDatasetShards(t *testing.T) {
	t.Parallel()
	one := shard(t, "val-0.tar",
		member{"0001.png", dot(t, 10)}, member{"0001.cls", []byte("2\n")}, member{"0001.json", []byte(`{"name": "cat", "n": 1}`)},
		member{"sub/0001.PNG", dot(t, 20)}, member{"sub/0001.cls", []byte("0")}, member{"sub/0001.json", []byte(`{"name": "dog", "n": 7}`)},
		member{"notes.txt", []byte("no image")})
	two := shard(t, "val-1.tar", member{"0001.cls", []byte("1")}, member{"0001.json", []byte(`{"name": "cat"}`)}, member{"0001.png", dot(t, 30)})
	s := openShards(t, ShardsOptions{Paths: []string{one, two}})
	want := []string{"val-0.tar/0001.png 2", "val-0.tar/sub/0001.PNG 0", "val-1.tar/0001.png 1"}
	if got := listing(t, s); !slices.Equal(got, want) {
		t.Errorf("samples: %q, want %q", got, want)
	}
	for i, level := range []float32{10, 20, 30} {
		sample, err := s.At(t.Context(), i, Frame{}) // Frame{}: not resized
		if err != nil || sample.Input.Data[0] != level/255 {
			t.Errorf("pixel of image %d: %v, %v, want %v", i, sample.Input.Data, err, level/255)
		}
	}
	// Notes says what was left out: here notes.txt.
	if notes := s.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "left out 1 samples") {
		t.Errorf("notes: %q", notes)
	}
	byName := openShards(t, ShardsOptions{Paths: []string{one, two}, Label: "json.name"})
	if got, want := listing(t, byName), []string{"val-0.tar/0001.png cat", "val-0.tar/sub/0001.PNG dog", "val-1.tar/0001.png cat"}; !slices.Equal(got, want) {
		t.Errorf("labels in JSON: %q, want %q", got, want)
	}
	names := filepath.Join(t.TempDir(), "classnames.txt")
	if err := os.WriteFile(names, []byte("tench\ngoldfish\nshark\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	named := openShards(t, ShardsOptions{Paths: []string{one, two}, Names: names})
	if got := named.Classes(); !slices.Equal(got, []string{"tench", "goldfish", "shark"}) {
		t.Errorf("classes: %q", got)
	}
}

// TestShardsWithNumbers checks labels in JSON as Python writes them: whole numbers as floats, and
// NaN, which is no label and disturbs no other field.
func TestShardsWithNumbers(t *testing.T) {
	t.Parallel()
	labelled := func(texts ...string) (*Shards, error) {
		var members []member
		for i, text := range texts {
			key := strconv.Itoa(i)
			members = append(members, member{key + ".png", dot(t, 1)}, member{key + ".json", []byte(text)})
		}
		return OpenShards(t.Context(), ShardsOptions{Paths: []string{shard(t, "a.tar", members...)}, Label: "json.label"})
	}
	s, err := labelled(`{"label": 2.0, "score": NaN}`, `{"label": NaN, "name": "\"NaN"}`, `{"label": 1, "low": [-Infinity]}`)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{2, NoLabel, 1} {
		if got := s.Describe(i).Label; got != want {
			t.Errorf("the label of sample %d is %d, want %d", i, got, want)
		}
	}
	if len(s.Classes()) != 3 {
		t.Errorf("classes %q, want three", s.Classes())
	}
	_, err = labelled(`{"label": 2.0}`, `{"label": 3.5}`)
	wantErrorContaining(t, err, `label "3.5" is not a whole number`)
	if s, err = labelled(`{"label": "NaN"}`, `{"label": "a \" NaN"}`); err != nil || !slices.Equal(s.Classes(), []string{"NaN", `a " NaN`}) {
		t.Errorf("%v: texts with NaN are not kept", err)
	}
	if s, err = labelled(`{"label": 1e1}`, `{"label": " 2 "}`); err != nil || s.Describe(0).Label != 10 || s.Describe(1).Label != 2 {
		t.Errorf("%v: 1e1 and a number between spaces are not 10 and 2", err)
	}
	for text, want := range map[string]string{`{"label": -100}`: `label "-100"`, `{"label": Infinity}`: `label "Infinity"`, `{"label": -Infinity}`: `label "-Infinity"`, "{\"label\": 1}\n{\"label\": 2}": "more than one object"} {
		_, err = labelled(`{"label": 1}`, text)
		wantErrorContaining(t, err, want)
	}
}

// TestShardsWithNames checks that labels that are names are lines of the file of names, whatever
// their order, and that a name that it lacks is an error.
func TestShardsWithNames(t *testing.T) {
	t.Parallel()
	labelled := func(names string, texts ...string) (*Shards, error) {
		var members []member
		for i, text := range texts {
			key := strconv.Itoa(i)
			members = append(members, member{key + ".png", dot(t, 1)}, member{key + ".cls", []byte(text)})
		}
		return OpenShards(t.Context(), ShardsOptions{Paths: []string{shard(t, "a.tar", members...)}, Names: writeText(t, filepath.Join(t.TempDir(), "names.txt"), names)})
	}
	s, err := labelled("\xef\xbb\xbfdog\nowl\ncat\n", "owl", "cat", "", "\xef\xbb\xbfdog")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 2, NoLabel, 0} {
		if got := s.Describe(i).Label; got != want {
			t.Errorf("the label of sample %d is %d, want %d", i, got, want)
		}
	}
	_, err = labelled("dog\nowl\ncat\n", "owl", "bee")
	wantErrorContaining(t, err, `no class "bee"`)
}

func TestShardsWithSeveralImages(t *testing.T) {
	t.Parallel()
	path := shard(t, "a.tar", member{"1.left.png", dot(t, 1)}, member{"1.right.png", dot(t, 2)})
	_, err := OpenShards(t.Context(), ShardsOptions{Paths: []string{path}})
	wantErrorContaining(t, err, "1 has several images (left.png, right.png): set image to one of these extensions")
	s := openShards(t, ShardsOptions{Paths: []string{path}, Image: "right.png"})
	if sample, err := s.At(t.Context(), 0, Frame{}); err != nil || sample.Input.Data[0] != 2.0/255 {
		t.Errorf("the chosen image: %v, %v", sample.Input.Data, err)
	}
}

func wantErrorContaining(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v does not contain %q", err, text)
	}
}

func TestDamagedShards(t *testing.T) {
	t.Parallel()
	whole := shardBytes(t, member{"1.png", dot(t, 1)}, member{"1.cls", []byte("1")})
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	z.Write(whole)
	z.Close()
	huge := bytes.Clone(whole)
	copy(huge[124:136], "77777777777\x00") // the size of the first member, in octal
	header := tar.Header{Name: "1.png", Size: 1 << 40}
	var headerOnly bytes.Buffer
	tar.NewWriter(&headerOnly).WriteHeader(&header)
	// A tar consists of blocks of 512 bytes. Here each member is a header and one block of data,
	// and two blocks of zeros mark the end.
	cases := []struct {
		name string
		data []byte
		want string
	}{
		{"no end mark", whole[:len(whole)-2*512], "no end mark"},
		{"cut in a member", whole[:600], "truncated"},
		{"cut in a header", whole[:1100], "the shard is damaged"},
		{"damaged size", huge, "the shard is damaged"},
		{"size beyond the file", headerOnly.Bytes(), "is it truncated?"},
		{"compressed", compressed.Bytes(), "decompress it"},
		{"not a tar", bytes.Repeat([]byte("text "), 400), "the shard is damaged"},
		{"empty", nil, "no end mark"},
		{"no images", shardBytes(t, member{"1.txt", []byte("x")}), "no images"},
		{"a name twice", shardBytes(t, member{"1.png", dot(t, 1)}, member{"1.png", dot(t, 1)}), "1.png is there twice"},
		{"members not consecutive", shardBytes(t, member{"1.png", dot(t, 1)}, member{"2.png", dot(t, 1)}, member{"1.cls", []byte("1")}), "the members of 1 are not consecutive"},
		{"huge label", shardBytes(t, member{"1.png", dot(t, 1)}, member{"1.cls", make([]byte, 2<<20)}), "a label is expected"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x.tar")
			if err := os.WriteFile(path, c.data, 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := OpenShards(t.Context(), ShardsOptions{Paths: []string{path}})
			wantErrorContaining(t, err, c.want)
		})
	}
}

func TestShardsWithoutLabels(t *testing.T) {
	t.Parallel()
	path := shard(t, "a.tar", member{"1.png", dot(t, 1)}, member{"2.png", dot(t, 2)}, member{"2.cls", []byte("3")})
	s := openShards(t, ShardsOptions{Paths: []string{path}})
	if a, b := s.Describe(0).Label, s.Describe(1).Label; a != NoLabel || b != 3 {
		t.Errorf("labels: %d and %d, want none and 3", a, b)
	}
	if notes := s.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "1 of 2 images have no label") {
		t.Errorf("notes: %q", notes)
	}
	_, err := OpenShards(t.Context(), ShardsOptions{Paths: []string{path}, Label: "json.label"})
	wantErrorContaining(t, err, `no sample has a label in "json.label"`)
}

// TestEmptyShards checks that shards may be empty, unless all are.
func TestEmptyShards(t *testing.T) {
	t.Parallel()
	one, empty := shard(t, "a.tar", member{"1.png", dot(t, 1)}), shard(t, "b.tar")
	if s := openShards(t, ShardsOptions{Paths: []string{empty, one, empty}}); s.Len() != 1 {
		t.Errorf("%d samples, want 1", s.Len())
	}
	_, err := OpenShards(t.Context(), ShardsOptions{Paths: []string{empty}})
	wantErrorContaining(t, err, "no images")
}

// TestShardsWithADamagedImage checks that a truncated image is a BadSample, the error of one
// sample.
func TestShardsWithADamagedImage(t *testing.T) {
	t.Parallel()
	s := openShards(t, ShardsOptions{Paths: []string{shard(t, "a.tar", member{"1.png", dot(t, 1)[:20]}, member{"2.png", dot(t, 2)})}})
	_, err := s.At(t.Context(), 0, Frame{})
	if bad := (*BadSample)(nil); !errors.As(err, &bad) || bad.Name != "a.tar/1.png" {
		t.Errorf("reading a damaged image: %v", err)
	}
	if _, err := s.At(t.Context(), 1, Frame{}); err != nil {
		t.Error(err)
	}
}

// TestFingerprintOfShards checks that the fingerprint is a hash of the samples, not of the files.
func TestFingerprintOfShards(t *testing.T) {
	t.Parallel()
	a, b, c := member{"1.png", dot(t, 1)}, member{"2.png", dot(t, 2)}, member{"2.png", dot(t, 3)}
	fingerprint := func(shards ...string) string { return openShards(t, ShardsOptions{Paths: shards}).Fingerprint() }
	inOneShard := fingerprint(shard(t, "x.tar", a, b))
	if inTwoShards := fingerprint(shard(t, "y.tar", a), shard(t, "z.tar", b)); inTwoShards != inOneShard {
		t.Error("the fingerprint depends on how samples are divided over shards")
	}
	if other := fingerprint(shard(t, "x.tar", a, c)); other == inOneShard {
		t.Error("another image has the same fingerprint")
	}
}

// FuzzShards checks that any bytes are an error or samples of which each can be read or is a
// BadSample.
func FuzzShards(f *testing.F) {
	f.Add(shardBytes(f, member{"1.png", dot(f, 1)}, member{"1.cls", []byte("1")}, member{"1.json", []byte(`{"label": 1}`)}), "json.label")
	f.Add(shardBytes(f, member{"a.b/1.left.png", dot(f, 1)}), "")
	f.Fuzz(func(t *testing.T, data []byte, label string) {
		path := filepath.Join(t.TempDir(), "x.tar")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := OpenShards(t.Context(), ShardsOptions{Paths: []string{path}, Label: label})
		if err != nil {
			return
		}
		for i := range s.Len() {
			if _, err := s.At(t.Context(), i, Frame{}); err != nil && !errors.As(err, new(*BadSample)) {
				t.Errorf("sample %d: %v", i, err)
			}
		}
	})
}
