package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// An Image is an image of a run folder that a report shows, such as a contact sheet.
type Image struct {
	ImageText
	Width  int    `json:"width"`
	Height int    `json:"height"`
	PNG    []byte `json:"png"`
}

// ImageText is the content of the file NAME.json that describes NAME.png. All fields are optional.
type ImageText struct {
	Title   string `json:"title"`
	Caption string `json:"caption"` // one or two sentences on what the image shows
	Alt     string `json:"alt"`     // alternative text; the caption if empty
	Measure string `json:"measure"` // measure that it belongs to
	Model   string `json:"model"`   // model that it was made with
	// Sheet describes a contact sheet of a run; nil for other images.
	Sheet *scores.Sheet `json:"sheet,omitempty"`
}

// Limits on the images in a page.
const (
	maxImages          = 60
	maxImageBytes      = 4 << 20 // of one
	maxTotalImageBytes = 5 << 20 // of all
	maxPixels          = 50e6    // of one
)

// readImages reads the images of a run folder: pictures/*.png, then pictures/*/*.png, each in the
// order of their names, without those that readSampleSheets and readMapSheets read. Files that are
// not images, or exceed the limits above, are left out with a note.
func readImages(files fs.FS) (images []Image, notes []string, err error) {
	var names []string
	for _, pattern := range []string{"*.png", "*/*.png"} {
		found, err := fs.Glob(files, "pictures/"+pattern)
		if err != nil {
			return nil, nil, fmt.Errorf("listing the pictures: %w", err)
		}
		names = append(names, found...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return path.Dir(name) == sampleSheets || path.Dir(name) == mapSheets })
	bytesLeft := maxTotalImageBytes
	for _, name := range names {
		p, err := readImage(files, name)
		switch {
		case err != nil:
			notes = append(notes, err.Error())
		case len(images) == maxImages || len(p.PNG) > bytesLeft:
			notes = append(notes, fmt.Sprintf("%s is left out of the report, which holds at most %d images and %s of them", name, maxImages, Mebibytes(maxTotalImageBytes)))
		default:
			bytesLeft -= len(p.PNG)
			images = append(images, p)
		}
	}
	return images, notes, nil
}

// readImage reads an image and its description, if there is one.
func readImage(files fs.FS, name string) (Image, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return Image{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if info.Size() > maxImageBytes {
		return Image{}, fmt.Errorf("%s is left out of the report: it has %s, more than %s", name, Mebibytes(info.Size()), Mebibytes(maxImageBytes))
	}
	p := Image{}
	if p.PNG, err = fs.ReadFile(files, name); err != nil {
		return Image{}, fmt.Errorf("reading %s: %w", name, err)
	}
	header, err := png.DecodeConfig(bytes.NewReader(p.PNG))
	if err != nil {
		return Image{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if p.Width, p.Height = header.Width, header.Height; p.Width*p.Height > maxPixels {
		return Image{}, fmt.Errorf("%s is left out of the report: %d x %d pixels are too many", name, p.Width, p.Height)
	}
	text, err := fs.ReadFile(files, strings.TrimSuffix(name, ".png")+".json")
	if err == nil {
		err = json.Unmarshal(text, &p.ImageText)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Image{}, fmt.Errorf("reading the caption of %s: %w", name, err)
	}
	if p.Title == "" {
		p.Title = strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(name), "pictures/"), ".png")
	}
	return p, nil
}
