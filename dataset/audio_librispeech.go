package dataset

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
)

// readTranscripts sets the factors of LibriSpeech files from their names and transcripts, and
// leaves out files without a transcript. A file is one utterance of a speaker who reads a chapter.
func (s *Audio) readTranscripts() error {
	words := map[string]int{} // number of words, by the path of an utterance without its extension
	read := map[string]bool{} // transcripts that have been read
	var missing []string
	kept := 0 // number of files with a transcript so far; they move to the front of the lists of s
	var speakers, chapters []string
	for i, f := range s.files {
		folder, stem := path.Dir(f.name), strings.TrimSuffix(path.Base(f.name), path.Ext(f.name))
		parts := strings.Split(stem, "-")
		if len(parts) != 3 {
			return fmt.Errorf("%s is not a name of LibriSpeech: SPEAKER-CHAPTER-NUMBER.flac", f.name)
		}
		transcript := path.Join(folder, parts[0]+"-"+parts[1]+".trans.txt")
		if !read[transcript] {
			read[transcript] = true
			if err := s.readTranscript(transcript, words); err != nil {
				return err
			}
		}
		n := words[path.Join(folder, stem)]
		if n == 0 {
			missing = append(missing, f.name)
			continue
		}
		s.files[kept], s.info[kept], s.damaged[kept] = f, s.info[i], s.damaged[i]
		s.setFactor(kept, "words", float64(n))
		if s.damaged[kept] == nil && s.info[kept].Frames > 0 {
			s.setFactor(kept, "words-per-second", float64(n)/s.info[kept].Seconds())
		}
		speakers, chapters = append(speakers, parts[0]), append(chapters, parts[1])
		kept++
	}
	if kept == 0 {
		return fmt.Errorf("none of %d audio files has a transcript SPEAKER-CHAPTER.trans.txt beside it", len(s.files))
	}
	s.note(missing, "without a transcript")
	s.files, s.info, s.damaged = s.files[:kept], s.info[:kept], s.damaged[:kept]
	return s.labelSpeakers(speakers, chapters)
}

// readTranscript adds the number of words of each line, "SPEAKER-CHAPTER-NUMBER WORD WORD ...", to
// words, by the path of the utterance without its extension. A missing file counts as empty.
func (s *Audio) readTranscript(name string, words map[string]int) error {
	file, err := filesys.Open(filepath.Join(s.dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 {
			words[path.Join(path.Dir(name), fields[0])] = len(fields) - 1
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// labelSpeakers sets the factors speaker and chapter, and sets the label to one of them if the
// options select it.
func (s *Audio) labelSpeakers(speakers, chapters []string) error {
	columns := map[string][]string{"speaker": speakers, "chapter": chapters}
	if label := s.options.Label; label != "" {
		if columns[label] == nil {
			return fmt.Errorf("label %q: with the layout librispeech it is speaker or chapter", label)
		}
		s.label(prefixed(columns[label])) // speaker numbers are names, not indices
		for i, c := range s.classes {
			s.classes[i] = strings.TrimPrefix(c, namePrefix)
		}
	}
	rows := make([][]string, len(speakers))
	for i := range rows {
		rows[i] = []string{speakers[i], chapters[i]}
	}
	return s.setFactors([]string{"speaker", "chapter"}, rows, func(i int) string { return s.files[i].name })
}

// namePrefix turns the number of a speaker into a text that is no number. Labels that are numbers
// are indices of classes (labelsOf), and those of speakers are not. Any text would do.
const namePrefix = "s"

// prefixed adds namePrefix to texts, so that they are not parsed as numbers.
func prefixed(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = namePrefix + t
	}
	return out
}
