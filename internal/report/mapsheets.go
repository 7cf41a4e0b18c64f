package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// A MapSheet describes a drawing of feature maps, and holds its image. See scores.MapSheet.
type MapSheet struct {
	scores.MapSheet
	Type  string `json:"type"` // media type of the image
	Image []byte `json:"image"`
}

const (
	mapSheets        = "pictures/maps"
	maxTotalMapBytes = 3 << 19 // 1.5 MiB, of all images
	maxTileDistance  = 1 << 12 // pixels, from one tile to the next
	tilesPerRow      = 4       // maps of x, maps of T(x), the former moved by T, difference
)

// readMapSheets reads the feature maps of a run folder in the order of their names. A sheet that
// cannot be used, or for which there is no room in a report, is left out with a note.
func readMapSheets(files fs.FS) (sheets []MapSheet, notes []string, err error) {
	names, err := fs.Glob(files, mapSheets+"/*.json")
	if err != nil {
		return nil, nil, fmt.Errorf("listing the feature maps: %w", err)
	}
	bytesLeft, omitted := maxTotalMapBytes, 0
	for _, name := range names {
		s, err := readMapSheet(files, name)
		switch {
		case err != nil:
			notes = append(notes, fmt.Sprintf("reading %s: %v", name, err))
		case len(s.Image) > bytesLeft:
			omitted++
		default:
			bytesLeft -= len(s.Image)
			sheets = append(sheets, s)
		}
	}
	if omitted > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d sheets of feature maps are left out of the report, which holds at most %s of them; they are in %s", omitted, len(names), Mebibytes(maxTotalMapBytes), mapSheets))
	}
	return sheets, notes, nil
}

// readMapSheet reads the description NAME.json and the image NAME.png.
func readMapSheet(files fs.FS, name string) (MapSheet, error) {
	var s MapSheet
	raw, err := readSmall(files, name)
	if err == nil {
		err = json.Unmarshal(raw, &s.MapSheet)
	}
	if err != nil {
		return s, err
	}
	s.Type = "image/png"
	if s.Image, err = readSmall(files, strings.TrimSuffix(name, ".json")+".png"); err != nil {
		return s, err
	}
	header, err := png.DecodeConfig(bytes.NewReader(s.Image))
	if err != nil {
		return s, err
	}
	rows := 0
	if s.HasInput { // the first row shows x and T(x)
		rows++
	}
	for _, l := range s.Layers {
		rows += len(l.Channels)
	}
	if t := s.Tile; t.Width < 1 || t.Height < 1 || t.Right < t.Width || t.Down < t.Height || t.Right > maxTileDistance || t.Down > maxTileDistance || header.Width < tilesPerRow*t.Right || header.Height < rows*t.Down || rows == 0 {
		return s, errors.New("its rows of tiles do not fit its image")
	}
	return s, nil
}
