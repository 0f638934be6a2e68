// The wire format of Protocol Buffers, without schemas: a message is a list
// of [field number, value], whose value is a number or boolean (a varint), a
// string or Buffer, or a list again (a message). Fields without a value are
// left out.

// encode writes a message.
export function encode(fields) {
  const parts = [];
  for (const [number, value] of fields) {
    if (value === undefined) continue;
    if (typeof value === 'number' || typeof value === 'boolean') {
      parts.push(varint(number * 8), varint(Number(value)));
      continue;
    }
    const bytes = Array.isArray(value) ? encode(value) : Buffer.from(value);
    parts.push(varint(number * 8 + 2), varint(bytes.length), bytes);
  }
  return Buffer.concat(parts);
}

function varint(n) {
  const bytes = [];
  for (; n > 127; n = Math.floor(n / 128)) bytes.push((n % 128) | 128);
  return Buffer.from([...bytes, n]);
}

// Message is a message that was read.
export class Message {
  #fields = new Map(); // number to its last value: a BigInt or a Buffer

  constructor(buffer) {
    let at = 0;
    const take = (n) => {
      if (at + n > buffer.length) throw new Error('protobuf: message ends in a field');
      return buffer.subarray(at, (at += n));
    };
    const number = () => {
      let n = 0n;
      for (let shift = 0n; ; shift += 7n) {
        const [byte] = take(1);
        n |= BigInt(byte & 127) << shift;
        if (byte < 128) return n;
      }
    };
    const kinds = {0: number, 1: () => take(8), 2: () => take(Number(number())), 5: () => take(4)};
    while (at < buffer.length) {
      const tag = Number(number());
      const read = kinds[tag % 8];
      if (!read) throw new Error(`protobuf: wire type ${tag % 8}`);
      this.#fields.set(Math.floor(tag / 8), read());
    }
  }

  has(field) {
    return this.#fields.has(field);
  }
  // bytes, text, number and message return the field's value, empty when it is
  // not there.
  bytes(field) {
    return this.#fields.get(field) ?? Buffer.alloc(0);
  }
  text(field) {
    return this.bytes(field).toString();
  }
  number(field) {
    return Number(this.#fields.get(field) ?? 0n);
  }
  message(field) {
    return new Message(this.bytes(field));
  }
}

// envelope frames a message of a Connect stream; the last one has a flag and
// holds JSON.
export function envelope(bytes, last = false) {
  const head = Buffer.alloc(5);
  head[0] = last ? 2 : 0;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

// Refusal is an error that the SDK is told, with a code of Connect's.
export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
