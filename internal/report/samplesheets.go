package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// A SampleSheet holds the predictions for single samples of a data set under a transformation, with
// an image of the samples. See scores.SampleSheet.
type SampleSheet struct {
	scores.SampleSheet
	Type  string `json:"type"`            // media type of the image or recording; "" if there is none
	Image []byte `json:"image,omitempty"` // of the samples, or the recording of their clips
}

// HasClasses reports whether some model has counts of correct predictions for several classes.
func (s SampleSheet) HasClasses() bool {
	return slices.ContainsFunc(s.Models, func(m scores.SheetModel) bool { return len(m.ByClass) > 1 })
}

// Drops returns how much accuracy each class loses, as a fraction, for each model and each view.
func (s SampleSheet) Drops() []float64 {
	var out []float64
	for _, m := range s.Models {
		right := map[int]int{}
		for _, c := range m.ByClass {
			right[c.Class] = c.Right
		}
		for _, v := range m.Views {
			for _, c := range v.ByClass {
				if c.N > 0 {
					out = append(out, float64(right[c.Class]-c.Right)/float64(c.N))
				}
			}
		}
	}
	return out
}

const (
	sampleSheets       = "pictures/samples"
	maxSheetBytes      = 4 << 20 // of a description or an image
	maxTotalSheetBytes = 4 << 20 // of all images
)

// readSampleSheets reads the sample sheets of a run folder in the order of their names. A sheet
// that cannot be used is left out with a note.
func readSampleSheets(files fs.FS) (sheets []SampleSheet, notes []string, err error) {
	names, err := fs.Glob(files, sampleSheets+"/*.json")
	if err != nil {
		return nil, nil, fmt.Errorf("listing the samples: %w", err)
	}
	bytesLeft := maxTotalSheetBytes
	for _, name := range names {
		s, err := readSampleSheet(files, name)
		if err != nil {
			notes = append(notes, err.Error())
			continue
		}
		if len(s.Image) > bytesLeft {
			notes = append(notes, fmt.Sprintf("the images of %s are left out of the report, which holds at most %s of them", name, Mebibytes(maxTotalSheetBytes)))
			s.Image, s.Tile, s.Sound, s.Type = nil, nil, nil, ""
		}
		bytesLeft -= len(s.Image)
		sheets = append(sheets, s)
	}
	return sheets, notes, nil
}

// readSampleSheet reads the description, NAME.json, and the image NAME.png or .jpg, or the recording
// NAME.wav, if there is one.
func readSampleSheet(files fs.FS, name string) (SampleSheet, error) {
	var s SampleSheet
	raw, err := readSmall(files, name)
	if err == nil {
		err = json.Unmarshal(raw, &s.SampleSheet)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return s, fmt.Errorf("reading %s: %w", name, err)
	}
	endings := map[string]string{".png": "image/png", ".jpg": "image/jpeg"}
	switch {
	case s.Sound != nil:
		endings = map[string]string{".wav": "audio/wav"}
	case s.Tile == nil:
		return s, nil
	}
	for ending, media := range endings {
		s.Image, err = readSmall(files, strings.TrimSuffix(name, ".json")+ending)
		if err == nil {
			s.Type = media
			return s, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return s, fmt.Errorf("reading the image or sound of %s: %w", name, err)
		}
	}
	s.Tile, s.Sound = nil, nil // the file was removed
	return s, nil
}

// readSmall reads a file of a report. More than maxSheetBytes are an error.
func readSmall(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSheetBytes {
		return nil, fmt.Errorf("it has %s, more than %s", Mebibytes(info.Size()), Mebibytes(maxSheetBytes))
	}
	return fs.ReadFile(files, name)
}

var errSheet = errors.New("its lists differ in length, or have indices out of range")

// check checks the indices and the lengths of all lists, on which the report's page relies. See
// scores.SampleSheet.
func (s *SampleSheet) check() error {
	n, ok := len(s.Samples), true
	checkClasses := func(all []int) { // -1: unknown
		for _, c := range all {
			ok = ok && c >= -1 && c < len(s.Classes)
		}
	}
	checkIndices := func(all []int) {
		for _, i := range all {
			ok = ok && i >= 0 && i < n
		}
	}
	checkCounts := func(by []scores.ByClass, confusion [][3]int) {
		for _, c := range by {
			checkClasses([]int{c.Class})
		}
		for _, c := range confusion {
			checkClasses(c[:2]) // the label and the prediction; c[2] is a count
		}
	}
	for _, one := range s.Samples {
		checkClasses([]int{one.Label})
	}
	if s.Sound != nil {
		checkIndices(s.Sound.Lines)
		ok = ok && s.Sound.Rate > 0 && s.Sound.Length > 0
	}
	for _, m := range s.Models {
		ok = ok && len(m.Views) == len(s.Parameters) && (m.Clean == nil || len(m.Clean) == n) && len(m.Confidence) == len(m.Clean)
		checkClasses(m.Clean)
		checkIndices(m.Most)
		checkIndices(m.Least)
		checkIndices(m.Fails)
		checkCounts(m.ByClass, m.Confusion)
		for _, v := range m.Views {
			ok = ok && len(v.Value) == n && len(v.Moved) == len(m.Clean) && len(v.Confidence) == len(m.Clean)
			checkClasses(v.Moved)
			checkCounts(v.ByClass, v.Confusion)
		}
	}
	for _, one := range s.Projected {
		checkClasses([]int{one.Label})
	}
	for _, p := range s.Projections {
		ok = ok && len(p.Views) == len(s.Parameters)
		for _, v := range p.Views {
			ok = ok && len(v.Clean) == len(s.Projected) && len(v.Moved) == len(s.Projected)
		}
	}
	for _, p := range s.Partings {
		ok = ok && p.A >= 0 && p.A < len(s.Models) && p.B >= 0 && p.B < len(s.Models) && len(p.Counts) == len(s.Parameters)
		checkIndices(p.Samples)
	}
	if t := s.Tile; t != nil {
		ok = ok && t.Width > 0 && t.Height > 0 && t.Right >= t.Width && t.Down >= t.Height
	}
	if !ok || len(s.Parameters) == 0 || len(s.Models) == 0 {
		return errSheet
	}
	return nil
}
