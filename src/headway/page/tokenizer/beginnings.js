// Finds which of many strings a text continues with. Every beginning of every string is a key of one map, so the search
// ends at the first character that continues none of them.

export class Beginnings {
  /** entries: [string, value], no string twice */
  constructor(entries) {
    this.values = new Map();
    for (const [string, value] of entries) {
      for (let end = 1; end < string.length; end += 1) {
        const beginning = string.slice(0, end);
        if (!this.values.has(beginning)) this.values.set(beginning, null);
      }
      this.values.set(string, value);
    }
  }

  /** Calls found(end, value) for each string that stands at text[start:end], shortest first. */
  forEach(text, start, found) {
    for (let end = start + 1; end <= text.length; end += 1) {
      const value = this.values.get(text.slice(start, end));
      if (value === undefined) return;
      if (value !== null) found(end, value);
    }
  }

  /** -> [end, value] of the longest string that stands at text[start:end], or null */
  longest(text, start) {
    let longest = null;
    this.forEach(text, start, (end, value) => {
      longest = [end, value];
    });
    return longest;
  }
}

/** The end of the character that begins at `start`: after one unit of UTF-16, or two. */
export function characterEnd(text, start) {
  return start + (text.codePointAt(start) > 0xffff ? 2 : 1);
}
