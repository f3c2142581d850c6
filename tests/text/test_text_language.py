"""Languages: found where a text tells, left open where it does not."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet.text import code, detect

PARAGRAPHS = {
    "en": "The catalogue was printed in two volumes, and the second of them has been lost since the fire. What is "
    "known about it comes from letters that the librarian wrote to his brother.",
    "de": "Der Katalog wurde in zwei Bänden gedruckt, und der zweite ist seit dem Brand verschollen. Was man über "
    "ihn weiß, stammt aus Briefen, die der Bibliothekar an seinen Bruder schrieb.",
    "fr": "Le catalogue a été imprimé en deux volumes, et le second est perdu depuis l’incendie. Ce que l’on en "
    "sait vient des lettres que le bibliothécaire écrivait à son frère.",
    "es": "El catálogo se imprimió en dos tomos, y el segundo está perdido desde el incendio. Lo que se sabe de él "
    "viene de las cartas que el bibliotecario escribía a su hermano.",
    "it": "Il catalogo fu stampato in due volumi, e il secondo è andato perduto dopo l’incendio. Quello che ne "
    "sappiamo viene dalle lettere che il bibliotecario scriveva a suo fratello.",
    "pt": "O catálogo foi impresso em dois volumes, e o segundo está perdido desde o incêndio. O que se sabe dele "
    "vem das cartas que o bibliotecário escrevia ao seu irmão.",
    "nl": "De catalogus werd in twee delen gedrukt, en het tweede is sinds de brand verloren. Wat men ervan weet, "
    "komt uit brieven die de bibliothecaris aan zijn broer schreef.",
    "sv": "Katalogen trycktes i två band, och det andra är förlorat sedan branden. Det man vet om det kommer från "
    "brev som bibliotekarien skrev till sin bror, och inte från någon annan.",
    "no": "Katalogen ble trykt i to bind, og det andre er tapt siden brannen. Det man vet om det, kommer fra brev "
    "som bibliotekaren skrev til broren sin, og ikke fra noen annen av hans venner.",
    "da": "Kataloget blev trykt i to bind, og det andet er gået tabt siden branden. Hvad man ved om det, kommer fra "
    "breve, som bibliotekaren skrev til sin bror, og ikke fra nogen af hans venner.",
    "fi": "Luettelo painettiin kahtena niteenä, ja toinen niistä on ollut kadoksissa tulipalon jälkeen. Se mitä "
    "siitä tiedetään, on peräisin kirjeistä, jotka kirjastonhoitaja kirjoitti veljelleen.",
    "ru": "Каталог был напечатан в двух томах, и второй из них утрачен после пожара. Всё, что о нём известно, взято "
    "из писем, которые библиотекарь писал своему брату. Мы этого не знали.",
    "hu": "A katalógust két kötetben nyomtatták ki, és a második a tűz óta elveszett. Amit tudunk róla, azokból a "
    "levelekből származik, amelyeket a könyvtáros írt a testvérének.",
    "ro": "Catalogul a fost tipărit în două volume, iar al doilea este pierdut de la incendiu. Ceea ce se știe "
    "despre el vine din scrisorile pe care bibliotecarul le scria fratelui său.",
    "pl": "Katalog wydrukowano w dwóch tomach, a drugi z nich zaginął po pożarze. To, co o nim wiadomo, pochodzi z "
    "listów, które bibliotekarz pisał do swojego brata.",
    "cs": "Katalog byl vytištěn ve dvou svazcích a druhý z nich je od požáru ztracen. To, co o něm víme, pochází z "
    "dopisů, které knihovník psal svému bratrovi.",
    "tr": "Katalog iki cilt olarak basıldı ve ikincisi yangından beri kayıp. Onun hakkında bilinenler, "
    "kütüphanecinin kardeşine yazdığı mektuplardan geliyor ve bunlar için başka bir kaynak yok.",
    "ca": "El catàleg es va imprimir en dos volums, i el segon s’ha perdut després de l’incendi. El que se’n sap ve "
    "de les cartes que el bibliotecari escrivia al seu germà amb molta cura.",
    "el": "Ο κατάλογος τυπώθηκε σε δύο τόμους, και ο δεύτερος έχει χαθεί μετά την πυρκαγιά.",
    "uk": "Каталог було надруковано у двох томах, і другий із них втрачено після пожежі. Усе, що про нього відомо, "
    "походить із листів, які бібліотекар писав своєму братові.",
    "ja": "目録は二巻で印刷され、第二巻は火事のあと失われた。",
    "zh": "目录分两卷印刷，第二卷在火灾后遗失。",
    "ko": "목록은 두 권으로 인쇄되었고 둘째 권은 화재 이후 사라졌다.",
    "th": "แคตตาล็อกพิมพ์เป็นสองเล่ม",
    "ar": "طبع الفهرس في مجلدين، وقد ضاع الثاني منهما بعد الحريق. وما يعرف عنه جاء من الرسائل التي كتبها أمين "
    "المكتبة إلى أخيه.",
    "fa": "این فهرست در دو جلد چاپ شد و جلد دوم پس از آتش‌سوزی گم شده است. آنچه درباره آن می‌دانیم از نامه‌هایی است "
    "که کتابدار برای برادرش نوشته بود.",
    "hi": "सूची दो खंडों में छपी थी और दूसरा खंड आग के बाद खो गया है। उसके बारे में जो पता है वह उन पत्रों से आता है जो पुस्तकालयाध्यक्ष "
    "ने अपने भाई को लिखे थे।",
}


@pytest.mark.parametrize("language", PARAGRAPHS)
def test_paragraphs(language: str) -> None:
    assert detect(PARAGRAPHS[language]) == language
    assert detect((PARAGRAPHS[language] + "\n") * 40) == language
    assert detect(PARAGRAPHS[language].upper()) in (language, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "Preliminary Report-International Algebraic Language",
        "Shuttle Sort (Algorithm 175) Shaw, C. J.; Trimble, T. N.",
        "Shr 45 cts vs 50 cts Net 18.0 mln vs 19.9 mln Sales 116.1 mln vs 108.8 mln Avg shrs 4,249,221",
        "May 1191/1210 ba Jul 1195 BID Sep 1220/1255 ba Sales at call NIL accumulative total NIL",
        "Van der Waals forces",
        "for (int i = 0; i < n; i++) { sum += a[i]; }",
        "3.14159 2.71828 1.41421",
        "\ud800\udfff",
    ],
)
def test_what_does_not_tell_is_left_open(text: str) -> None:
    assert detect(text) == ""


def test_quotations_do_not_turn_a_text() -> None:
    assert detect(PARAGRAPHS["en"] * 3 + " „Der Katalog wurde gedruckt“ 目録 каталог.") == "en"


@given(st.text(max_size=300))
def test_an_answer_is_a_code_or_nothing(text: str) -> None:
    answer = detect(text)
    assert answer == "" or code(answer) == answer


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("en", "en"), ("EN-us", "en"), ("eng", "en"), ("English", "en"), ("ger", "de"), ("deu", "de"),
        ("de_AT", "de"), ("Deutsch", "de"), ("nb", "no"), ("nno", "no"), ("zho", "zh"), ("en; fr", "en"),
        ("mul", ""), ("und", ""), ("", ""), ("zz", ""), ("x" * 1000, ""),
    ],
)  # fmt: skip
def test_codes(name: str, expected: str) -> None:
    assert code(name) == expected


def test_the_model_is_not_loaded_without_need() -> None:
    program = (
        "import sys; from indlet.text import Analyzer\n"
        f"Analyzer().vector({PARAGRAPHS['en']!r}); Analyzer().vector('a short title')\n"
        "sys.exit('py3langid' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
