package output

import (
	"slices"
	"strconv"
	"strings"
)

// ParseNames returns the names of classes in an entry of a model's metadata, which is a dictionary
// with the keys 0 to n - 1 as Python prints it, {0: 'person', 1: "driver's cab"}, or a list,
// ['person', 'bicycle']. For any other text it returns nil.
func ParseNames(text string) []string {
	text = strings.TrimSpace(text)
	dictionary := strings.HasPrefix(text, "{")
	if len(text) < 2 || !dictionary && !strings.HasPrefix(text, "[") {
		return nil
	}
	text = text[1 : len(text)-1]
	byNumber := map[int]string{}
	for len(strings.TrimSpace(text)) > 0 {
		text = strings.TrimLeft(text, " ,\n\t")
		number := len(byNumber)
		if dictionary {
			before, after, ok := strings.Cut(text, ":")
			n, err := strconv.Atoi(strings.Trim(before, ` '"`))
			if !ok || err != nil {
				return nil
			}
			number, text = n, strings.TrimLeft(after, " ")
		}
		name, rest, ok := quoted(text)
		if !ok {
			return nil
		}
		byNumber[number], text = name, rest
	}
	names := make([]string, len(byNumber))
	for i := range names {
		name, ok := byNumber[i]
		if !ok {
			return nil
		}
		names[i] = name
	}
	return slices.Clip(names)
}

// quoted reads a string in single or double quotes from the start of a text, and returns it and the
// rest of the text. A backslash in the string stands for the character after it.
func quoted(text string) (value, rest string, ok bool) {
	if text == "" || text[0] != '\'' && text[0] != '"' {
		return "", "", false
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		case c == text[0]:
			return out.String(), text[i+1:], true
		default:
			out.WriteByte(c)
		}
	}
	return "", "", false
}
