package run_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/scores"
)

// TestImageNetForms checks that photos of ImageNet have the same scores in each form in which its
// validation set is stored: a folder for each synset (class), one folder with a file of labels in
// four formats, a tar shard of WebDataset, and Parquet in the layout of Hugging Face.
func TestImageNetForms(t *testing.T) {
	const images = 12
	// The numbers of the photos' classes, 1 to 1000, in the development kit of the ImageNet
	// challenge.
	numbers := map[string]int{"n01440764": 449, "n01496331": 445, "n01530575": 386, "n01558993": 391, "n01601694": 396, "n01629819": 494,
		"n01641577": 499, "n01667114": 460, "n01682714": 465, "n01692333": 470, "n01698640": 476, "n01729977": 480}
	network := filepath.Join(testdata.Path(t, "nets/squeezenet1_1"), "model.onnx")
	photos, err := filepath.Glob(filepath.Join(testdata.Path(t, "imagenet-samples"), "*.JPEG"))
	if err != nil || len(photos) < images {
		t.Fatal(len(photos), err)
	}
	type row struct {
		Image struct {
			Bytes []byte `parquet:"bytes"`
			Path  string `parquet:"path"`
		} `parquet:"image"`
		Label int64 `parquet:"label"`
	}
	dir, synsets := t.TempDir(), dataset.ImageNetSynsets()
	// The files of labels: as for Caffe, as in Kaggle's competition, with synsets, and as in the
	// development kit.
	var caffe, kaggle, bySynset, challenge strings.Builder
	var shard bytes.Buffer
	var rows []row
	members := tar.NewWriter(&shard)
	write := func(name string, data []byte) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	member := func(name string, data []byte) {
		t.Helper()
		if err := members.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := members.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	kaggle.WriteString("ImageId,PredictionString\n")
	for i := range images {
		photo := photos[i*5%images] // the order of the names is not that of the synsets
		data, err := os.ReadFile(photo)
		if err != nil {
			t.Fatal(err)
		}
		synset, _, _ := strings.Cut(filepath.Base(photo), "_")
		label, id := slices.Index(synsets, synset), fmt.Sprintf("ILSVRC2012_val_%08d", i+1)
		write("folders/"+synset+"/"+id+".JPEG", data)
		write("flat/"+id+".JPEG", data)
		fmt.Fprintf(&caffe, "%s.JPEG %d\n", id, label)
		// Two boxes, each a synset and four coordinates.
		fmt.Fprintf(&kaggle, "%s,%s 85 1 499 272 %[2]s 1 2 3 4 \n", id, synset)
		fmt.Fprintln(&challenge, numbers[synset])
		fmt.Fprintf(&bySynset, "%s.JPEG,%s\n", id, synset)
		member(id+".jpg", data)
		member(id+".cls", []byte(fmt.Sprint(label)))
		r := row{Label: int64(label)}
		r.Image.Bytes, r.Image.Path = data, id+".JPEG"
		rows = append(rows, r)
	}
	if err := members.Close(); err != nil {
		t.Fatal(err)
	}
	var columns bytes.Buffer
	if err := parquet.Write(&columns, rows); err != nil {
		t.Fatal(err)
	}
	write("val.txt", []byte(caffe.String()))
	write("LOC_val_solution.csv", []byte(kaggle.String()))
	write("ILSVRC2012_validation_ground_truth.txt", []byte(challenge.String()))
	write("synsets.csv", []byte(bySynset.String()))
	write("val-000000.tar", shard.Bytes())
	write("validation-00000-of-00001.parquet", columns.Bytes())

	var want []scores.Row
	const folders = "images: folders"
	for _, form := range []string{
		"images: {folder: flat, labels: val.txt}",
		"images: {folder: flat, labels: LOC_val_solution.csv}",
		"images: {folder: flat, labels: ILSVRC2012_validation_ground_truth.txt}",
		"images: {folder: flat, labels: synsets.csv}",
		`webdataset: "val-{000000..000000}.tar"`,
		"parquet: validation-*.parquet",
		folders,
	} {
		s := studytest.Parse(t, dir, `name: forms
seed: 1
data: {name: val, `+form+`}
models: {name: squeezenet, onnx: `+network+`, preprocess: {resize: 72, crop: 64, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}, layers: [output]}
transforms: {name: turn, rotate: {values: [90]}}
measures: [accuracy, effective-invariance, invariance]
`)
		r := studytest.Run(t, s, t.TempDir(), studytest.Options(t))
		if want == nil {
			want = r.Rows
			continue
		}
		if form == folders { // intervals and nulls (scores by chance) depend on the order of the images
			for _, rows := range [][]scores.Row{want, r.Rows} {
				for i := range rows {
					rows[i].Low, rows[i].High, rows[i].Null = 0, 0, 0
				}
			}
		}
		t.Run(form, func(t *testing.T) { studytest.SameScores(t, want, r.Rows, 1e-12) })
	}
}
